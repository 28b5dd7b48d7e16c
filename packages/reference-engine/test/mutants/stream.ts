import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Sending } from "../../src/Seams.ts"
import type { Mutants } from "./Mutant.ts"

/** Changes a number of the usage. */
const counted = (name: string, more: number, only?: "whole" | "frame") => () => ({
  sending: (): Sending => (text, part) => [
    only !== undefined && only !== part ? text : text.replace(new RegExp(`"${name}":(\\d+)`), (_, number: string) => `"${name}":${Number(number) + more}`)
  ]
})
const ends = /"finish_reason":"(\w+)"/
const replaced = (pattern: RegExp, by: string) => () => ({ sending: (): Sending => (text) => [text.replace(pattern, by)] })
const framed = (change: (text: string) => ReadonlyArray<string>) => () => ({
  sending: (): Sending => (text, part) => (part === "whole" ? [text] : change(text))
})

const decodeFields = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))

/** Faults in usage, endings and frames. */
export const streamMutants: Mutants = {
  choices_alike: {
    spoils: "all choices are equal to the first",
    seams: () => ({
      sending: (): Sending => (text) => [
        Option.match(decodeFields(text), {
          onNone: () => text,
          onSome: ({ choices, ...rest }) =>
            JSON.stringify({ ...rest, choices: Array.isArray(choices) ? choices.map((_, index) => ({ ...choices[0], index })) : choices })
        })
      ]
    })
  },
  likeliest_named_wrongly: {
    spoils: "each of a message's likeliest tokens has the name of the next one",
    seams: replaced(/("top_logprobs":\[\{"token":)("(?:[^"\\]|\\.)*")(.*?\},\{"token":)("(?:[^"\\]|\\.)*")/g, "$1$4$3$2")
  },
  usage_prompt_short: { spoils: "the prompt is counted one token short", seams: counted("prompt_tokens", -1) },
  usage_completion_short: { spoils: "the answer is counted one token short", seams: counted("completion_tokens", -1) },
  usage_total_wrong: { spoils: "the total is not the sum", seams: counted("total_tokens", 1) },
  usage_stream_differs: { spoils: "a stream counts one token more than a whole answer", seams: counted("completion_tokens", 1, "frame") },
  usage_of_one_choice: {
    spoils: "of several choices only the tokens of one are counted",
    seams: () => ({
      sending: (): Sending => (text, part) => {
        const choices = part === "whole" ? text.split('"finish_reason"').length - 1 : 1
        return [text.replace(/"completion_tokens":(\d+)/, (_, number: string) => `"completion_tokens":${Math.ceil(Number(number) / Math.max(1, choices))}`)]
      }
    })
  },
  end_token_uncounted: {
    spoils: "the token that ends an answer is not counted",
    seams: () => {
      const less: Sending = (text) => [text.replace(/"completion_tokens":(\d+)/, (_, number: string) => `"completion_tokens":${Number(number) - 1}`)]
      return {
        sending: () => {
          let ended = false
          return (text, part) => {
            ended ||= text.includes('"finish_reason":"stop"')
            return ended ? less(text, part) : [text]
          }
        }
      }
    }
  },
  finish_always_stop: { spoils: "every answer ends with the reason stop", seams: replaced(ends, '"finish_reason":"stop"') },
  finish_always_length: { spoils: "every answer ends with the reason length", seams: replaced(ends, '"finish_reason":"length"') },
  finish_not_streamed: { spoils: "streams report no finish reason", seams: framed((text) => [text.replace(ends, '"finish_reason":null')]) },
  finish_twice: {
    spoils: "streams report the finish reason twice",
    seams: framed((text) => (ends.test(text) ? [text, text.replace(/"content":"(?:[^"\\]|\\.)*"/, '"content":""')] : [text]))
  },
  role_twice: {
    spoils: "every chunk has the role",
    seams: framed((text) => [text.replace('"delta":{"content"', '"delta":{"role":"assistant","content"')])
  },
  done_missing: { spoils: "streams end without [DONE]", seams: framed((text) => (text === "[DONE]" ? [] : [text])) },
  after_done: { spoils: "something follows [DONE]", seams: framed((text) => (text === "[DONE]" ? [text, '{"choices":[]}'] : [text])) },
  usage_with_choice: {
    spoils: "the usage chunk has a choice",
    seams: framed((text) => [text.includes('"usage"') ? text.replace('"choices":[]', '"choices":[{"index":0,"delta":{},"finish_reason":null}]') : text])
  },
  last_chunk_lost: {
    spoils: "the last text of a stream is lost",
    seams: framed((text) => [ends.test(text) ? text.replace(/"delta":\{.*?\},"logprobs"/, '"delta":{},"logprobs"') : text])
  },
  third_chunk_lost: {
    spoils: "one chunk of a stream is lost",
    seams: () => ({
      sending: () => {
        let frames = 0
        return (text, part) => (part === "frame" && text.includes('"content":') && ++frames === 3 ? [] : [text])
      }
    })
  },
  character_split: { spoils: "characters of several tokens are broken", seams: () => ({ splitsCharacters: true }) },
  stop_text_leaks: { spoils: "the beginning of a stop string is sent before it is known to be one", seams: () => ({ holdsStops: false }) },
  special_tokens_shown: { spoils: "the end token is part of the text", seams: () => ({ showsSpecial: true }) },
  never_ends: { spoils: "the end-of-turn token is unknown", seams: () => ({ config: (config) => ({ ...config, endTokens: new Set<number>() }) }) },
  unreadable_frame: { spoils: "one frame of a stream is cut", seams: framed((text) => [text.includes('"usage"') ? text.slice(0, -3) : text]) }
}
