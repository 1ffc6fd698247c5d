"""record.py OUT MODULE ARGUMENTS: run one of fairseq's commands and keep what its model saw.

OUT receives `encoded`, {source tokens: encoder output} of every batch in evaluation (the latest,
where a sentence came more than once), and `weights`, those of the model when the command ended.
"""

import importlib
import sys

import torch
from torch.nn.modules.module import register_module_forward_hook

out, module, *arguments = sys.argv[1:]
encoded, models = {}, []


def keep(module, inputs, result):
    name = type(module).__name__
    if name == "RoFormerTransformer" and not models:
        models.append(module)
    if name == "Encoder" and not module.training:
        tokens = inputs[0]
        for row, states in zip(tokens, result["encoder_out"][0].transpose(0, 1)):
            words = row.ne(module.padding_idx)
            encoded[tuple(row[words].tolist())] = states[words].clone()


# fairseq's generator calls the encoder alone, with names; the hook wants the tokens first.
def keep_with_names(module, inputs, names, result):
    keep(module, inputs or (names.get("src_tokens"),), result)


register_module_forward_hook(keep_with_names, with_kwargs=True)
sys.argv = [module, *arguments]
importlib.import_module(module).cli_main()
weights = {name: tensor for model in models for name, tensor in model.state_dict().items()}
torch.save({"encoded": encoded, "weights": weights}, out)
