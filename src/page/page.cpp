#include "page/page.h"

#include <algorithm>
#include <string_view>

#include "base/check.h"
#include "base/json_writer.h"
#include "page/page_template.h"

namespace forerun::page {
namespace {

constexpr std::string_view kTitle = "__FORERUN_TITLE__", kConnect = "__FORERUN_CONNECT__", kData = "__FORERUN_DATA__";
constexpr std::string_view kPolicyFrom = "http-equiv=\"Content-Security-Policy\" content=\"";

// JSON that ends no <script> and means the same: in JSON '<' and the two separators of lines stand within texts only.
std::string in_script(std::string_view json) {
  std::string text;
  text.reserve(json.size() + json.size() / 32);
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string_view rest = json.substr(i, 3);
    if (json[i] == '<') {
      text += "\\u003c";
    } else if (rest == "\xE2\x80\xA8" || rest == "\xE2\x80\xA9") {
      text += rest.back() == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      text += json[i];
    }
  }
  return text;
}

std::string in_markup(std::string_view words) {
  std::string text;
  for (const char c : words) {
    switch (c) {
      case '&': text += "&amp;"; break;
      case '<': text += "&lt;"; break;
      case '>': text += "&gt;"; break;
      case '"': text += "&quot;"; break;
      default: text += c;
    }
  }
  return text;
}

// Answers that come one a line as a list.
std::string listed(std::string_view answers) {
  const size_t last = answers.find_last_not_of(" \n");
  if (last == std::string_view::npos) return "[]";
  answers = answers.substr(0, last + 1);
  if (answers.front() == '[') return std::string(answers);
  std::string list = "[";
  for (size_t at = 0; at < answers.size();) {
    const size_t end = std::min(answers.find("\n{", at), answers.size());
    if (list.size() > 1) list += ',';
    list += answers.substr(at, end - at);
    at = end + 1;
  }
  return list + "]";
}

// The template's text around its three places, which stand in this order and once each.
struct Parts {
  std::string_view before_connect, before_title, before_data, rest;
};

Parts parts_of(std::string_view page) {
  const size_t connect = page.find(kConnect), title = page.find(kTitle), data = page.find(kData);
  CHECK(connect < title && title < data && data != std::string_view::npos, "the page has lost a place of its template");
  const auto between = [&](size_t from, size_t to) { return page.substr(from, to - from); };
  return {page.substr(0, connect), between(connect + kConnect.size(), title), between(title + kTitle.size(), data),
          page.substr(data + kData.size())};
}

std::string filled(std::string_view connect, const std::string& title, const std::string& data) {
  const Parts parts = parts_of(page_template());
  std::string page(parts.before_connect);
  page.append(connect).append(parts.before_title).append(in_markup(title)).append(parts.before_data);
  return page.append(in_script(data)).append(parts.rest);
}

}  // namespace

std::string report_page(const PageContent& content) {
  JsonWriter json;
  json.begin_object()
      .field("verb", content.verb)
      .field("command", content.command)
      .field("made", content.made)
      .field("version", content.version)
      .key("answers")
      .raw(listed(content.answers))
      .key("series")
      .begin_object();
  for (const auto& [name, series] : content.series) json.key(name).raw(series);
  return filled("'none'", content.command, json.end_object().end_object().take());
}

std::string server_page(const ServerContent& content) {
  JsonWriter json;
  json.begin_object().field("api", content.api).field("version", content.version).end_object();
  return filled("'self'", "Forerun", json.take());
}

std::string server_policy() {
  const Parts parts = parts_of(page_template());
  const std::string_view before = parts.before_connect.substr(parts.before_connect.find(kPolicyFrom));
  std::string policy(before.substr(kPolicyFrom.size()));
  policy.append("'self'").append(parts.before_title.substr(0, parts.before_title.find('"')));
  return policy + "; frame-ancestors 'none'";
}

}  // namespace forerun::page
