"""The 26 job types of Gavel's experiments, in the order its random choices count them, and how a trace writes them."""

from __future__ import annotations

from typing import NamedTuple


class JobType(NamedTuple):
    """A job type and the further fields of a line of a trace; `%s` in a command is the folder of the data."""

    name: str
    command: str
    folder: str
    steps_option: str
    needs_data: bool


class _Family(NamedTuple):
    model: str
    batch_sizes: tuple[int, ...]
    command: str
    folder: str
    steps_option: str


_FAMILIES = (
    _Family(
        "ResNet-18", (16, 32, 64, 128, 256), "python3 main.py --data_dir=%s/cifar10 --batch_size {}",
        "image_classification/cifar10", "--num_steps",
    ),
    _Family(
        "ResNet-50", (16, 32, 64, 128), "python3 main.py -j 8 -a resnet50 -b {} %s/imagenet/",
        "image_classification/imagenet", "--num_minibatches",
    ),
    _Family(
        "Transformer", (16, 32, 64, 128, 256),
        "python3 train.py -data %s/translation/multi30k.atok.low.pt -batch_size {} -proj_share_weight",
        "translation", "-step",
    ),
    _Family(
        "LM", (5, 10, 20, 40, 80), "python main.py --cuda --data %s/wikitext2 --batch_size {}",
        "language_modeling", "--steps",
    ),
    _Family(
        "Recommendation", (512, 1024, 2048, 4096, 8192),
        "python3 train.py --data_dir %s/ml-20m/pro_sg/ --batch_size {}", "recommendation", "-n",
    ),
)  # fmt: skip
_PLAIN = (
    JobType(
        "A3C", "python3 main.py --env PongDeterministic-v4 --workers 4 --amsgrad True", "rl", "--max-steps", False
    ),
    JobType(
        "CycleGAN", "python3 cyclegan.py --dataset_path %s/monet2photo --decay_epoch 0", "cyclegan", "--n_steps", True
    ),
)  # fmt: skip

JOB_TYPES: tuple[JobType, ...] = (
    *(
        JobType(f"{f.model} (batch size {size})", f.command.format(size), f.folder, f.steps_option, True)
        for f in _FAMILIES
        for size in f.batch_sizes
    ),
    *_PLAIN,
)
"""All job types in the order that a seed's choices depend on."""
JOB_NAMES: tuple[str, ...] = tuple(kind.name for kind in JOB_TYPES)
"""Their names, the `workload` of a job."""
