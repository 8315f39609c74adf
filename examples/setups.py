"""Set-ups to hold predictions to: `python -m forerun.setup_pairs examples/setups.py -o pairs.jsonl.gz` on a GPU."""
import torch


def images(device):
    """A small convolutional net under autocast, its images in channels-last layout."""
    layers = []
    for inputs, outputs in ((3, 32), (32, 64), (64, 128)):
        layers += [torch.nn.Conv2d(inputs, outputs, 3, 2, 1), torch.nn.BatchNorm2d(outputs), torch.nn.ReLU()]
    head = [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(128, 10)]
    model = torch.nn.Sequential(*layers, *head).to(device, memory_format=torch.channels_last)
    batch = torch.randn(64, 3, 128, 128, device=device).contiguous(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    labels = torch.randint(10, (64,), device=device)
    return {"model": model, "optimizer": optimizer, "batch": (batch, labels), "precision": "amp_bf16"}


def tokens(device):
    """An encoder in float32, with gradients accumulated and clipped."""
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    model = torch.nn.Sequential(torch.nn.Embedding(8000, 256), torch.nn.TransformerEncoder(layer, 4),
                                torch.nn.Linear(256, 8000)).to(device)
    ids = torch.randint(8000, (16, 128), device=device)
    return {"model": model, "optimizer": torch.optim.AdamW(model.parameters()), "batch": (ids, ids), "accumulate": 2,
            "clip_grad": 1.0}


SETUPS = {"images": images, "tokens": tokens}
