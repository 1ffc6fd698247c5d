"""Slow twins of the fast code: the equations as printed, in loops and float64."""

import math

import torch


def position_options(name):
    """The options of a model with a position scheme on both sides, or where it can only serve."""
    return {"decoder_position": name} if name == "xpos" else {"position": name}


def pairs(width, layout="interleaved"):
    """The dimensions that make a pair: RoFormer's, or those of GPT-NeoX and Llama."""
    if layout == "interleaved":
        return [(2 * i, 2 * i + 1) for i in range(width // 2)]
    return [(i, i + width // 2) for i in range(width // 2)]


def frequencies(dim, base=10000.0):
    """theta_i of RoFormer eq. 15."""
    return [base ** (-2 * i / dim) for i in range(dim // 2)]


def linear_frequencies(dim, factor, base=10000.0):
    """Position interpolation: f(x, m / factor). A place divided is a frequency divided."""
    return [theta / factor for theta in frequencies(dim, base)]


def ntk_frequencies(dim, factor, base=10000.0):
    """b' = b * s ** (|D| / (|D| - 2)), Definition 1 of the YaRN paper."""
    return frequencies(dim, base * factor ** (dim / (dim - 2)))


def yarn_frequencies(dim, factor, original_positions, base=10000.0):
    """NTK-by-parts, Definition 2 of the YaRN paper, with alpha = 1 and beta = 32."""
    result = []
    for theta in frequencies(dim, base):
        wavelength = 2 * math.pi / theta
        ratio = original_positions / wavelength
        gamma = 0.0 if ratio < 1 else 1.0 if ratio > 32 else (ratio - 1) / (32 - 1)
        result.append((1 - gamma) * theta / factor + gamma * theta)
    return result


def rotation_matrix(place, dim, thetas, layout="interleaved"):
    """R of eq. 15: one 2x2 matrix (eq. 13) for each pair, and 1 where nothing turns."""
    matrix = torch.eye(dim, dtype=torch.float64)
    for (a, b), theta in zip(pairs(2 * len(thetas), layout), thetas):
        cos, sin = math.cos(place * theta), math.sin(place * theta)
        matrix[a, a], matrix[a, b] = cos, -sin
        matrix[b, a], matrix[b, b] = sin, cos
    return matrix


def rotate(x, places, thetas, layout="interleaved"):
    """(T, D) vectors, T places -> (T, D), each vector times its matrix."""
    rows = [rotation_matrix(m, x.size(-1), thetas, layout) @ row for m, row in zip(places, x)]
    return torch.stack(rows)


def sinusoid(place, dim, padding_idx):
    """fairseq's row for the place-th token: it counts from padding_idx + 1, sines come first."""
    position = place + padding_idx + 1
    step = math.log(10000) / (dim // 2 - 1)
    angles = [position * math.exp(-step * i) for i in range(dim // 2)]
    row = [math.sin(angle) for angle in angles] + [math.cos(angle) for angle in angles]
    return torch.tensor(row + [0.0] * (dim % 2), dtype=torch.float64)


def xpos(x, places, thetas, sign):
    """(T, D), T places -> (T, D): turned, and pair i scaled by zeta_i ** (sign * place / 512).

    Queries have sign 1 and keys -1; zeta_i = (i / (d / 2) + gamma) / (1 + gamma) with gamma 0.4.
    """
    turned = rotate(x, places, thetas)
    for row, place in enumerate(places):
        for i, pair in enumerate(pairs(2 * len(thetas))):
            zeta = (i / len(thetas) + 0.4) / 1.4
            turned[row, list(pair)] *= zeta ** (sign * place / 512)
    return turned


def alibi_slopes(heads):
    """The slopes of ALiBi's section 3, and of its code where the heads are no power of two."""
    power = 1
    while 2 * power <= heads:
        power *= 2
    if power < heads:
        return alibi_slopes(power) + alibi_slopes(2 * power)[0::2][: heads - power]
    ratio = 2 ** (-8 / heads)
    return [ratio * ratio**head for head in range(heads)]


def alibi_bias(places, heads):
    """bias[head][i][j] = -slope * |i - j|."""
    return [
        [[-slope * abs(i - j) for j in places] for i in places] for slope in alibi_slopes(heads)
    ]


def t5_bucket(step, bidirectional, buckets=32, farthest=128):
    """T5's bucket of a key `step` places after its query, in whole numbers.

    From distance near on, bucket near + n holds distances of at least near * (farthest / near) **
    (n / m), where m buckets are left; both sides to the power of m are whole numbers.
    """
    first = 0
    if bidirectional:
        buckets //= 2
        first = buckets if step > 0 else 0
        distance = abs(step)
    else:
        distance = max(-step, 0)
    near = buckets // 2
    if distance < near:
        return first + distance
    bucket, left = near, buckets - near
    while bucket < buckets - 1:
        n = bucket + 1 - near
        if distance**left * near**n < near**left * farthest**n:
            break
        bucket += 1
    return first + bucket


def t5_bias(places, table, bidirectional):
    """bias[head][i][j] = table[bucket of j - i][head]."""
    return [
        [[column[t5_bucket(j - i, bidirectional)] for j in places] for i in places]
        for column in table.T
    ]


def relative_bias(q, places, vector, clip):
    """bias[i][j] = q_i a_ij / sqrt(d), a_ij the vector of clip(j - i) (Shaw et al., eq. 5)."""
    return [
        [row @ vector[max(-clip, min(j - i, clip))] / math.sqrt(q.size(1)) for j in places]
        for row, i in zip(q, places)
    ]


def attention(q, k, v, visible, bias=None):
    """One head of one sentence: (T, D), (S, D), (S, D), visible[t][s] -> (T, D) and (T, S).

    A query that sees no key belongs to padding, and nobody reads its row of zeros.
    """
    values, all_weights = [], []
    for t in range(q.size(0)):
        if not any(visible[t]):
            values.append(torch.zeros_like(v[0]))
            all_weights.append(torch.zeros_like(k[:, 0]))
            continue
        exponentials = []
        for s in range(k.size(0)):
            score = q[t] @ k[s] / math.sqrt(q.size(1)) + (0 if bias is None else bias[t][s])
            exponentials.append(torch.exp(score) if visible[t][s] else torch.zeros_like(score))
        weights = torch.stack(exponentials) / sum(exponentials)
        values.append(sum(weight * row for weight, row in zip(weights, v)))
        all_weights.append(weights)
    return torch.stack(values), torch.stack(all_weights)


def elu_features(x):
    """phi(x) = elu(x) + 1, eq. 7 of arXiv 2006.16236."""
    return torch.stack([number + 1 if number > 0 else torch.exp(number) for number in x])


def relu_features(x):
    """max(x, 0), and a constant after Performer's code."""
    return torch.stack([torch.clamp(number, min=0) + 0.1 for number in x])


def exp_features(x):
    return torch.stack([torch.exp(number) for number in x])


def favor_features(x, projection):
    """exp(w^T x - |x|^2 / 2) / sqrt(m) for each row w, lemma 1 of Performer (arXiv 2009.14794).

    Its x is ours divided by D^(1/4), so that x^T y is the score q^T k / sqrt(D).
    """
    x = x / x.numel() ** 0.25
    norm = sum(number * number for number in x)
    rows = [torch.exp(w @ x - norm / 2) for w in projection]
    return torch.stack(rows) / math.sqrt(len(rows))


def with_a_share(features, share):
    """Each feature and a small share of their sum, as exp and favor have them for queries."""
    return lambda x: features(x) + share * features(x).sum()


def linear_attention(q, k, v, visible, features, turn, query_features=None):
    """One head of one sentence by RoFormer eq. 19; a query that sees no key gets zeros.

    Args:
        q, k, v: (T, D), (S, D), (S, D)
        visible: visible[t][s]
        features: phi, (D) -> (D)
        query_features: phi of queries, if not the same
        turn: R, (T, D) vectors in the order of their tokens -> (T, D)
    """
    phi_q = torch.stack([(query_features or features)(row) for row in q])
    phi_k = torch.stack([features(row) for row in k])
    turned_q, turned_k = turn(phi_q), turn(phi_k)
    outputs = []
    for t in range(q.size(0)):
        seen = [s for s in range(k.size(0)) if visible[t][s]]
        numerator = sum(((turned_q[t] @ turned_k[s]) * v[s] for s in seen), torch.zeros_like(v[0]))
        denominator = sum(phi_q[t] @ phi_k[s] for s in seen)
        outputs.append(numerator / denominator if seen else numerator)
    return torch.stack(outputs)


def multi_head(
    module, x, source, visible, turn_q=None, turn_k=None, turn_v=None, scale=1.0, bias=None
):
    """A whole attention module on one sentence: (T, C) and (S, C') -> (T, C) and (H, T, S).

    Args:
        module: holds q_proj, k_proj, v_proj, out_proj
        turn_q, turn_k, turn_v: what is done to the queries, keys and values of one head
        scale: what scores are multiplied by
        bias: bias[head][t][s] or bias(head, queries)[t][s], added to scores
    """
    heads, weights = [], []
    for head in range(module.num_heads):
        rows = slice(head * module.head_dim, (head + 1) * module.head_dim)
        q, k, v = (
            turn(inputs @ projection.weight[rows].T + projection.bias[rows])
            for projection, inputs, turn in (
                (module.q_proj, x, turn_q or _same),
                (module.k_proj, source, turn_k or _same),
                (module.v_proj, source, turn_v or _same),
            )
        )
        added = bias(head, q) if callable(bias) else bias and bias[head]
        output, shown = attention(q * scale, k, v, visible, added)
        heads.append(output)
        weights.append(shown)
    out = module.out_proj
    return torch.cat(heads, dim=-1) @ out.weight.T + out.bias, torch.stack(weights)


def _same(x):
    return x


def token_positions(row, padding_idx):
    """The places of one row's tokens that are no padding, None for padding before and after."""
    places, place = [], 0
    for token in row:
        places.append(None if token == padding_idx else place)
        place += token != padding_idx
    return places


def interleaved_to_half(weights, heads, width, projections=("q_proj", "k_proj")):
    """Reorder the rows of projections so that layout "half" does what "interleaved" did.

    Args:
        weights: state dict; matrices and biases of the named projections change, on both stacks
        width: rotated dimensions of each head
    """
    order = [a for a, _ in pairs(width)] + [b for _, b in pairs(width)]
    result = {}
    for name, weight in weights.items():
        if name.split(".")[-2:-1] and name.split(".")[-2] in projections:
            head_dim = weight.size(0) // heads
            within = order + list(range(width, head_dim))
            rows = [head * head_dim + row for head in range(heads) for row in within]
            weight = weight[rows]
        result[name] = weight
    return result


def beam_search(next_log_probs, beam, max_len, eos, pad, length_penalty=1.0):
    """fairseq's beam search for one sentence, without cache or batch.

    Args:
        next_log_probs: a list of prefixes, each beginning with eos -> log probabilities of the
            next word for each
        max_len: words of a hypothesis at most, eos not counted

    Returns:
        (score, words) pairs, the best first
    """
    live, done = [(0.0, [eos])], []
    for step in range(max_len + 1):
        candidates = []
        for (total, words), log_probs in zip(live, next_log_probs([words for _, words in live])):
            for word, log_prob in enumerate(log_probs):
                allowed = word != pad and (word != eos or step > 0)
                if allowed and (step < max_len or word == eos):
                    candidates.append((total + log_prob, [*words, word]))
        candidates.sort(key=lambda candidate: -candidate[0])
        for total, words in candidates[:beam]:
            if words[-1] == eos and len(done) < beam:
                done.append((total / (step + 1) ** length_penalty, words[1:]))
        if len(done) == beam:
            break
        live = [candidate for candidate in candidates if candidate[1][-1] != eos][:beam]
    return sorted(done, key=lambda hypothesis: -hypothesis[0])
