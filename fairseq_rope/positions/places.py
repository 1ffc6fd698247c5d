"""Where a token stands."""

import torch
from torch import Tensor


def token_positions(tokens: Tensor, padding_idx: int) -> Tensor:
    """Number the tokens of each row 0, 1, 2, ... from the first that is no padding.

    Padding on either side never changes the place of a token. Padding has no place of its own:
    its number means nothing and attention must mask it.

    Args:
        tokens: (batch, length) integers

    Returns:
        (batch, length) int64, or (1, length) where no row begins with padding, so that all rows
        share one numbering
    """
    columns = torch.arange(tokens.size(1), device=tokens.device).unsqueeze(0)
    padding = tokens.eq(padding_idx)
    if not padding[:, :1].any():
        return columns
    leading = padding.long().cumprod(dim=1).sum(dim=1, keepdim=True)
    return (columns - leading).clamp(min=0)


def distances(query_places: Tensor, key_places: Tensor) -> Tensor:
    """How far each key stands after each query, negative where it stands before.

    Args:
        query_places, key_places: (B or 1, T) and (B or 1, S)

    Returns:
        (B or 1, T, S), the place of the key less that of the query
    """
    return key_places.unsqueeze(1) - query_places.unsqueeze(2)
