import type { AdapterSupport } from "@seatrial/domain"
import { adaptable } from "./generated/adaptable.ts"

/** Valid values of `--max-lora-rank` (`vllm/config/lora.py`). */
const ranks = [1, 8, 16, 32, 64, 128, 256, 320, 512]
/** The largest vocabulary whose output head can have an adapter (`vllm/lora/layers/logits_processor.py`). */
const largestVocabulary = 258_048

/** The lowest valid `--max-lora-rank` for an adapter of this rank; null if the rank is too high. */
export const vllmRank = (rank: number): number | null => ranks.find((each) => each >= rank) ?? null

/** How vLLM 0.33.0 applies LoRA adapters (`vllm/lora`): one slot with room for every linear module of the model. */
export const vllmAdapters: AdapterSupport = {
  issue: (adapter, { architecture, vocab_size }) => {
    const embeddings = adaptable[architecture]
    if (embeddings === undefined) return `vllm-0.33.0 applies no adapters to ${architecture}.`
    if (vllmRank(adapter.rank) === null) return `vllm-0.33.0 takes ranks up to ${ranks.at(-1)}; the adapter's is ${adapter.rank}.`
    if (adapter.experts) return "Adapters of individual experts are not supported with vllm-0.33.0: their layout differs between architectures."
    const head = embeddings.includes("lm_head")
    if (adapter.targets.includes("lm_head") && !head) return `vllm-0.33.0 applies no adapters to the output head of ${architecture}.`
    if (head && vocab_size > largestVocabulary)
      return `vllm-0.33.0 serves adapters of ${architecture} with at most ${largestVocabulary} tokens in the vocabulary; it has ${vocab_size}.`
    return null
  },
  buffers: (adapter, { architecture }) => ({
    slots: 1,
    rank: vllmRank(adapter.rank) ?? adapter.rank,
    modules: "all",
    embeddings: (adaptable[architecture] ?? []).length > 0,
    graphs: 1
  })
}
