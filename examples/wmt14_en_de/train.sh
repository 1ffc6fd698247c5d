#!/usr/bin/env bash
# Train on what prepare.sh made; run again, it goes on from the last checkpoint.
#
#   [VARIABLE=value ...] ./train.sh [further options of fairseq-train, which win]
#
# WORK          the folder of prepare.sh (wmt14_en_de)
# MODEL         base or big (base)
# SAVE_DIR      folder of checkpoints and TensorBoard logs ($WORK/$MODEL)
# GPUS          GPUs of this machine; 0 trains on the CPU, to try things (all there are)
# BATCH_TOKENS  target tokens of one update, over all GPUs (25000)
# GPU_TOKENS    target tokens that fit one GPU at a time (4096)
# NODES, NODE_RANK, MASTER_ADDR, MASTER_PORT
#               for several machines, on each of which this script runs (1, 0, localhost, 29500)
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
WORK=${WORK:-wmt14_en_de}
MODEL=${MODEL:-base}
SAVE_DIR=${SAVE_DIR:-$WORK/$MODEL}
GPUS=${GPUS:-$(python -c 'import torch; print(torch.cuda.device_count())')}
BATCH_TOKENS=${BATCH_TOKENS:-25000}
GPU_TOKENS=${GPU_TOKENS:-4096}
NODES=${NODES:-1}

stop() {
    echo "train.sh: $1" >&2
    exit 1
}

for name in BATCH_TOKENS GPU_TOKENS NODES; do
    [[ ${!name} =~ ^[1-9][0-9]{0,8}$ ]] ||
        stop "$name must be a whole number above 0, but is ${!name}"
done
[[ $GPUS =~ ^(0|[1-9][0-9]{0,3})$ ]] || stop "GPUS must be a whole number, but is $GPUS"
[ "$NODES" -eq 1 ] || [ "$GPUS" -gt 0 ] || stop "NODES is $NODES, but GPUS is 0; try things on one"
case $MODEL in
    base) model=(--arch roformer_transformer_wmt_en_de --max-update 100000) ;;
    big) model=(--arch roformer_transformer_wmt_en_de_big --max-update 300000) ;;
    *) stop "MODEL must be base or big, but is $MODEL" ;;
esac
[ -e "$WORK/data/dict.en.txt" ] || stop "$WORK/data is not there; run prepare.sh first"

# Equal shares, as few as fit.
processes=$(((GPUS > 0 ? GPUS : 1) * NODES))
update_freq=$(((BATCH_TOKENS + GPU_TOKENS * processes - 1) / (GPU_TOKENS * processes)))
max_tokens=$((BATCH_TOKENS / (processes * update_freq)))
[ "$max_tokens" -gt 0 ] || stop "BATCH_TOKENS is $BATCH_TOKENS, too few for $processes processes"
echo "train.sh: $processes processes x $max_tokens tokens x update-freq $update_freq =" \
    "$((processes * max_tokens * update_freq)) tokens an update"

# Not torch.cuda.is_bf16_supported, which counts a slow emulation too.
precision=--cpu
[ "$GPUS" -eq 0 ] || precision=$(python -c '
import torch
print("--bf16" if torch.cuda.get_device_capability() >= (8, 0) else "--fp16")')

launch=(fairseq-train)
if [ "$NODES" -gt 1 ]; then
    launch=(torchrun --nnodes "$NODES" --node_rank "${NODE_RANK:-0}" --nproc_per_node "$GPUS"
        --master_addr "${MASTER_ADDR:-localhost}" --master_port "${MASTER_PORT:-29500}"
        "$(command -v fairseq-train)")
fi

"${launch[@]}" "$WORK/data" --source-lang en --target-lang de \
    --distributed-world-size "$processes" \
    --user-dir "$HERE/../../fairseq_rope" "${model[@]}" --share-all-embeddings \
    --optimizer adam --adam-betas '(0.9, 0.98)' --adam-eps 1e-9 \
    --lr 5e-4 --lr-scheduler inverse_sqrt --warmup-init-lr 1e-7 --warmup-updates 4000 \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --max-tokens "$max_tokens" --required-batch-size-multiple 1 \
    --update-freq "$update_freq" $precision --seed 1 \
    --save-interval-updates 1500 --keep-interval-updates 5 --no-epoch-checkpoints \
    --validate-interval-updates 1500 \
    --save-dir "$SAVE_DIR" --tensorboard-logdir "$SAVE_DIR/tensorboard" \
    --log-format simple --log-interval 100 "$@"
