"""record.py OUT MODULE ARGUMENTS: run one of fairseq's commands and keep what its model saw.

OUT receives `encoded`, {source tokens: encoder output} of every sentence in evaluation (the latest,
where one came more than once), and `weights`, those of the model when the command ended.
"""

import importlib
import sys

import torch
from torch.nn.modules.module import register_module_forward_hook

out, module, *arguments = sys.argv[1:]
command = importlib.import_module(module)  # first of fairseq, since it sets up logging
encoder_class = importlib.import_module("fairseq.models").FairseqEncoder
forward_of_the_generator = encoder_class.forward_torchscript
encoded, models = {}, []


def keep(module, inputs, options, result):
    name = type(module).__name__
    if name == "RoFormerTransformer" and not models:
        models.append(module)
    if name == "Encoder" and not module.training:
        tokens = inputs[0] if inputs else options["src_tokens"]
        for row, states in zip(tokens, result["encoder_out"][0].transpose(0, 1)):
            words = row.ne(module.padding_idx)
            encoded[tuple(row[words].tolist())] = states[words].clone()


def keep_of_the_generator(encoder, net_input):
    """fairseq's generator calls `forward_torchscript`, past torch's hooks."""
    result = forward_of_the_generator(encoder, net_input)
    keep(encoder, (), net_input, result)
    return result


register_module_forward_hook(keep, with_kwargs=True)
encoder_class.forward_torchscript = keep_of_the_generator
sys.argv = [module, *arguments]
command.cli_main()
weights = {name: tensor for model in models for name, tensor in model.state_dict().items()}
torch.save({"encoded": encoded, "weights": weights}, out)
