import type { Sending } from "../../src/Seams.ts"
import type { Mutants } from "./Mutant.ts"

const completeAnswer = (change: (text: string) => string) => () => ({ sending: (): Sending => (text, part) => [part === "whole" ? change(text) : text] })

/** The last brace of the arguments inside a JSON text. */
const lastBrace = /("arguments":"(?:[^"\\]|\\.)*)\}"/g

/** Faults in structured answers and tool calls. */
export const structureMutants: Mutants = {
  schema_ignored: { spoils: "neither response_format nor tool_choice bind", seams: () => ({ keepsMask: () => false }) },
  schema_ignored_streamed: { spoils: "as before, only in streams", seams: () => ({ keepsMask: (streamed) => !streamed }) },
  call_markup_shown: { spoils: "calls stay in the text with their marks", seams: () => ({ readsCalls: false }) },
  call_brace_lost: { spoils: "arguments lose their last brace", seams: completeAnswer((text) => text.replaceAll(lastBrace, '$1"')) },
  call_brace_lost_streamed: {
    spoils: "as before, only in streams",
    seams: () => ({ sending: (): Sending => (text, part) => [part === "frame" ? text.replaceAll(lastBrace, '$1"') : text] })
  },
  call_index_lost: {
    spoils: "the parts of streamed calls all have the index 7",
    seams: () => ({ sending: (): Sending => (text) => [text.replaceAll(/"tool_calls":\[\{"index":\d+/g, '"tool_calls":[{"index":7')] })
  },
  call_name_lost: {
    spoils: "functions have no name",
    seams: () => ({ sending: (): Sending => (text) => [text.replaceAll(/"function":\{"name":"[^"]*"/g, '"function":{"name":""')] })
  },
  call_numbers_lost: {
    spoils: "numbers in the arguments of complete answers become null",
    seams: completeAnswer((text) => (text.includes('"arguments"') ? text.replaceAll(/(\\":\s*)-?\d+(?=[,}])/g, "$1null") : text))
  },
  call_told_as_stop: {
    spoils: "an answer with calls ends with the reason stop",
    seams: () => ({ sending: (): Sending => (text) => [text.replace('"finish_reason":"tool_calls"', '"finish_reason":"stop"')] })
  },
  cut_call_told_whole: {
    spoils: "a cut call is reported as complete",
    seams: () => ({
      sending: () => {
        let called = false
        return (text) => {
          called ||= text.includes('"tool_calls":[{')
          return [called ? text.replace('"finish_reason":"length"', '"finish_reason":"tool_calls"') : text]
        }
      }
    })
  },
  content_beside_call: {
    spoils: "calls have their markup as content too",
    seams: completeAnswer((text) => text.replace('"content":null', '"content":"<tool_call>{}</tool_call>"'))
  }
}
