import type { Sending } from "../../src/Seams.ts"
import type { Mutants } from "./Mutant.ts"

/** Reasoning in a complete answer or in a chunk. */
const reasoning = /"reasoning":"(?:[^"\\]|\\.)*"/
const replaced = (pattern: RegExp, by: string) => () => ({ sending: (): Sending => (text) => [text.replace(pattern, by)] })
const counted = (change: (count: number) => number) => () => ({
  sending: (): Sending => (text) => [text.replace(/"reasoning_tokens":(\d+)/, (_, count: string) => `"reasoning_tokens":${change(Number(count))}`)]
})

/** Faults in reasoning. */
export const thoughtMutants: Mutants = {
  thought_in_answer: { spoils: "what was thought stays in the answer, marks and all", seams: () => ({ thought: () => null }) },
  thought_in_answer_streamed: { spoils: "as before, in streams alone", seams: () => ({ thought: (start, streamed) => (streamed ? null : start) }) },
  responses_thought_in_answer: {
    spoils: "on /v1/responses what was thought stays in the answer, marks and all",
    seams: () => ({ thought: (start, _, path) => (path === "/v1/responses" ? null : start) })
  },
  messages_thought_in_answer: {
    spoils: "on /v1/messages what was thought stays in the answer, marks and all",
    seams: () => ({ thought: (start, _, path) => (path === "/v1/messages" ? null : start) })
  },
  thought_lost: { spoils: "the thought is missing from the answer", seams: replaced(reasoning, '"reasoning":null') },
  thought_lost_streamed: {
    spoils: "as before, in streams alone",
    seams: () => ({ sending: (): Sending => (text, part) => [part === "frame" ? text.replace(reasoning, '"reasoning":null') : text] })
  },
  thought_always_opened: {
    spoils: "every answer is taken for a thought until one ends",
    seams: () => ({ thought: () => "opened" })
  },
  thought_without_end: {
    spoils: "the end of a thought is not seen: the answer is part of it",
    seams: replaced(/"content":"((?:[^"\\]|\\.)+)"/, '"content":null,"reasoning":"$1"')
  },
  thought_uncounted: { spoils: "tokens of thoughts are counted as 0", seams: counted(() => 0) },
  thought_overcounted: { spoils: "more tokens of thoughts are reported than the answer has", seams: counted((count) => count + 1_000) },
  toggle_ignored: {
    spoils: "a request for no thinking is passed over in silence",
    seams: () => ({ got: (_, body) => body.replaceAll('"enable_thinking":false', '"enable_thinking":true') })
  },
  schema_after_thought_ignored: { spoils: "after a thought neither response_format nor tool_choice bind", seams: () => ({ bindsAfterThought: false }) }
}
