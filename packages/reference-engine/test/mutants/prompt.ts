import type { Mutants } from "./Mutant.ts"

const isChat = (path: string) => path === "/v1/chat/completions" || path === "/tokenize of messages"

/** Faults between the prompt and the model. */
export const promptMutants: Mutants = {
  bos_missing: { spoils: "conversations begin without the begin token", seams: () => ({ prompt: (ids, path) => (isChat(path) ? ids.slice(1) : ids) }) },
  bos_double: {
    spoils: "conversations begin with two begin tokens",
    seams: () => ({ prompt: (ids, path) => (isChat(path) ? [...ids.slice(0, 1), ...ids] : ids) })
  },
  bos_double_unseen: {
    spoils: "as before, but /tokenize does not show it",
    seams: () => ({ prompt: (ids, path) => (path === "/v1/chat/completions" ? [...ids.slice(0, 1), ...ids] : ids) })
  },
  generation_prompt_missing: {
    spoils: "conversations do not end with the mark that asks for an answer",
    seams: () => ({ rendered: (text) => text.replace(/<\|assistant\|>$/, "") })
  },
  role_token_wrong: { spoils: "the user's turns are marked as a tool's", seams: () => ({ rendered: (text) => text.replaceAll("<|user|>", "<|tool|>") }) },
  system_dropped: {
    spoils: "the system turn is left out",
    seams: () => ({ rendered: (text) => text.replace(/<\|system\|>[\s\S]*?<\|end\|>/, "") })
  },
  content_trimmed: { spoils: "blanks at the ends of turns are cut", seams: () => ({ rendered: (text) => text.replaceAll(/\s+(?=<\|end\|>)/g, "") }) },
  empty_content_as_list: {
    spoils: "empty content is written as a list",
    seams: () => ({ rendered: (text) => text.replaceAll(/(<\|(?:user|assistant|system)\|>)(<\|end\|>)/g, "$1[]$2") })
  },
  past_calls_dropped: {
    spoils: "calls of earlier turns are left out",
    seams: () => ({ rendered: (text) => text.replaceAll(/<tool_call>[\s\S]*?<\/tool_call>/g, "") })
  },
  functions_unseen: {
    spoils: "the functions are not in the prompt",
    seams: () => ({ rendered: (text) => text.replace(/Functions:\n[\s\S]*?<\|end\|>/, "<|end|>") })
  },
  encoded_by_characters: {
    spoils: "text is tokenized with one token for another",
    seams: () => ({ prompt: (ids) => ids.map((id) => (id === 259 ? 260 : id)) })
  },
  detokenize_trims: { spoils: "/detokenize loses blanks at the beginning", seams: () => ({ detokenized: (text) => text.trimStart() }) },
  prompt_cut: { spoils: "a prompt that is too long is cut without an error", seams: () => ({ limit: { slack: 0, cuts: true } }) },
  limit_short: { spoils: "the longest request is one token shorter than promised", seams: () => ({ limit: { slack: -1, cuts: false } }) },
  limit_short_8: { spoils: "the longest request is 8 tokens shorter than promised", seams: () => ({ limit: { slack: -8, cuts: false } }) },
  error_at_limit: {
    spoils: "a prompt that is too long causes HTTP 500",
    seams: () => ({
      prompt: (ids) => {
        if (ids.length >= 1_000) throw new Error("out of bounds")
        return ids
      }
    })
  }
}
