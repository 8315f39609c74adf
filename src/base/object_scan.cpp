#include "base/object_scan.h"

namespace forerun {
namespace {

constexpr size_t kDeepest = 1024;  // brackets open at once, as for simdjson

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

bool is_of_scalar(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' || c == '.';
}

}  // namespace

bool ObjectScan::close(char bracket) {
  if (closers_.empty() || closers_.back() != bracket) return false;
  closers_.pop_back();
  wanted_ = Wanted::separator;
  if (closers_.empty()) state_ = State::closed;
  return true;
}

bool ObjectScan::take_value(char c) {
  if (c == '{' || c == '[') {
    if (closers_.size() == kDeepest) return false;
    closers_ += c == '{' ? '}' : ']';
    wanted_ = c == '{' ? Wanted::first_key : Wanted::first_element;
    return true;
  }
  wanted_ = Wanted::separator;
  within_string_ = c == '"';
  within_scalar_ = is_of_scalar(c);
  return within_string_ || within_scalar_;
}

bool ObjectScan::take(char c) {
  switch (wanted_) {
    case Wanted::object: return c == '{' && take_value(c);
    case Wanted::first_key:
      if (c == '}') return close(c);
      [[fallthrough]];
    case Wanted::key:
      wanted_ = Wanted::colon;
      within_string_ = c == '"';
      return within_string_;
    case Wanted::colon: wanted_ = Wanted::value; return c == ':';
    case Wanted::first_element:
      if (c == ']') return close(c);
      [[fallthrough]];
    case Wanted::value: return take_value(c);
    case Wanted::separator:
      if (c != ',') return close(c);
      wanted_ = closers_.back() == '}' ? Wanted::key : Wanted::value;
      return true;
  }
  return false;
}

size_t ObjectScan::read(std::string_view piece) {
  if (state_ != State::open) return 0;
  for (size_t at = 0; at < piece.size(); ++at) {
    const char c = piece[at];
    if (within_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else {
        within_string_ = c != '"';
      }
      continue;
    }
    if (within_scalar_ && is_of_scalar(c)) continue;
    within_scalar_ = false;
    if (is_blank(c)) continue;
    if (!take(c)) {
      state_ = State::broken;
      return at;
    }
    if (state_ == State::closed) return at + 1;
  }
  return piece.size();
}

bool is_one_object(std::string_view text) {
  ObjectScan scan;
  const size_t end = scan.read(text);
  return scan.state() == ObjectScan::State::closed &&
         text.find_first_not_of(" \n\r\t,]", end) == std::string_view::npos;
}

}  // namespace forerun
