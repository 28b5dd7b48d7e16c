import type { Sending } from "../../src/Seams.ts"
import type { Mutants } from "./Mutant.ts"

/** Reasoning in a complete answer or in a chunk. */
const reasoning = /"reasoning":"(?:[^"\\]|\\.)*"/
const replaced = (pattern: RegExp, by: string) => () => ({ sending: (): Sending => (text) => [text.replace(pattern, by)] })
const counted = (change: (count: number) => number) => () => ({
  sending: (): Sending => (text) => [text.replace(/"reasoning_tokens":(\d+)/, (_, count: string) => `"reasoning_tokens":${change(Number(count))}`)]
})

/** Streams lose the first piece of this kind after the reasoning. */
const firstLost = (piece: RegExp) => () => ({
  sending: (): Sending => {
    const state = { thought: false, lost: false }
    return (text, part) => {
      if (part !== "frame") return [text]
      state.thought ||= /"reasoning":"[^"]/.test(text)
      if (!state.thought || state.lost || !piece.test(text)) return [text]
      state.lost = true
      return [text.replace(/"content":"(?:[^"\\]|\\.)*"/, '"content":""')]
    }
  }
})

/** Faults in reasoning. */
export const thoughtMutants: Mutants = {
  thought_in_answer: { spoils: "reasoning stays in the answer with its marks", seams: () => ({ thought: () => null }) },
  thought_in_answer_streamed: { spoils: "as before, only in streams", seams: () => ({ thought: (start, streamed) => (streamed ? null : start) }) },
  responses_thought_in_answer: {
    spoils: "on /v1/responses reasoning stays in the answer with its marks",
    seams: () => ({ thought: (start, _, path) => (path === "/v1/responses" ? null : start) })
  },
  messages_thought_in_answer: {
    spoils: "on /v1/messages reasoning stays in the answer with its marks",
    seams: () => ({ thought: (start, _, path) => (path === "/v1/messages" ? null : start) })
  },
  thought_lost: { spoils: "reasoning is missing from the answer", seams: replaced(reasoning, '"reasoning":null') },
  thought_lost_streamed: {
    spoils: "as before, only in streams",
    seams: () => ({ sending: (): Sending => (text, part) => [part === "frame" ? text.replace(reasoning, '"reasoning":null') : text] })
  },
  answer_after_thought_cut_streamed: {
    spoils: "streams lose the first word of the answer after the reasoning",
    seams: firstLost(/"content":"(?:\\n|\s)*[^"\\\s]/)
  },
  object_after_thought_cut_streamed: {
    spoils: "as before, only if the answer is a JSON object",
    seams: firstLost(/"content":"(?:\\n|\s)*\{/)
  },
  thought_always_opened: {
    spoils: "every answer is read as reasoning until the end mark",
    seams: () => ({ thought: () => "opened" })
  },
  thought_without_end: {
    spoils: "the end of reasoning is not recognized, and the answer becomes part of it",
    seams: replaced(/"content":"((?:[^"\\]|\\.)+)"/, '"content":null,"reasoning":"$1"')
  },
  thought_uncounted: { spoils: "reasoning tokens are counted as 0", seams: counted(() => 0) },
  thought_overcounted: { spoils: "more reasoning tokens are reported than the answer has", seams: counted((count) => count + 1_000) },
  toggle_ignored: {
    spoils: "a request to turn reasoning off is ignored",
    seams: () => ({ got: (_, body) => body.replaceAll('"enable_thinking":false', '"enable_thinking":true') })
  },
  schema_after_thought_ignored: { spoils: "after reasoning, neither response_format nor tool_choice bind", seams: () => ({ bindsAfterThought: false }) }
}
