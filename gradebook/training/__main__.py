"""`python -m gradebook.training transformer`: see transformer/command.py."""

import sys

import torch

from gradebook.training.transformer import command

if __name__ == "__main__":
    if sys.argv[1:2] != ["transformer"]:
        sys.exit("python -m gradebook.training transformer [--help]")
    torch.set_flush_denormal(True)  # of the whole process, so set where it begins
    sys.exit(command.run(sys.argv[2:]))
