"""Packaging of fairseq-rope; the tools' settings are in pyproject.toml."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
VERSION = re.search(
    r'^__version__ = "(.+)"$', (ROOT / "fairseq_rope/__init__.py").read_text("utf-8"), re.M
).group(1)
README = ROOT / "README.md"

setup(
    name="fairseq-rope",
    version=VERSION,
    description="Rotary and other position encodings for machine translation with fairseq",
    long_description=README.read_text("utf-8") if README.exists() else "",
    long_description_content_type="text/markdown",
    license="MIT",
    packages=find_packages(include=["fairseq_rope", "fairseq_rope.*"]),
    package_data={"fairseq_rope": ["config/**/*.yaml"]},
    python_requires=">=3.9",
    install_requires=[
        # fairseq's own release does not import on Python 3.11 and newer; fairseq-fixed is the
        # same code, under the same import name, that does.
        'fairseq-fixed>=0.12.3.1,<0.13; python_version >= "3.11"',
        'fairseq>=0.12.2,<0.13; python_version < "3.11"',
        "torch>=2.5",
        "sacrebleu[ja,ko]>=2.3",
        "sentencepiece",
        "subword-nmt==0.3.8",
        "sacremoses",
        "tensorboard",
    ],
    extras_require={
        "floater": ["torchdiffeq"],
        "export": ["ctranslate2"],
        "plot": ["matplotlib"],
        "dev": ["pytest", "pytest-xdist", "pytest-timeout", "ruff", "mypy", "pre-commit"],
    },
    entry_points={"console_scripts": ["fairseq-rope = fairseq_rope.cli.main:main"]},
    classifiers=[
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
    ],
)
