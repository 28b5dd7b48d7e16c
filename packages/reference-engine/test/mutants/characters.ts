import type { Sending } from "../../src/Seams.ts"
import { on } from "./body.ts"
import type { Mutants } from "./Mutant.ts"

const sent = (change: (text: string) => string, only?: "whole" | "frame") => () => ({
  sending: (): Sending => (text, part) => [only !== undefined && only !== part ? text : change(text)]
})
const inCalls = (change: (text: string) => string) => sent((text) => (text.includes('"arguments"') ? change(text) : text))

/** Faults in characters of several code points or bytes. */
export const characterMutants: Mutants = {
  marks_dropped: { spoils: "combining characters are left out of answers", seams: sent((text) => text.replace(/\p{Mn}/gu, "")) },
  joiners_dropped_streamed: { spoils: "streams lose the joiners within emoji", seams: sent((text) => text.replaceAll("\u200d", ""), "frame") },
  composed: { spoils: "answers are normalized to composed characters (NFC)", seams: sent((text) => text.normalize("NFC"), "whole") },
  decomposed_streamed: { spoils: "streams are normalized to decomposed characters (NFD)", seams: sent((text) => text.normalize("NFD"), "frame") },
  call_characters_halved: {
    spoils: "of characters beyond 16 bits in the arguments of calls only half is sent",
    seams: inCalls((text) => text.replace(/[\u{10000}-\u{10ffff}]/gu, (character) => `\\\\u${(character.codePointAt(0) ?? 0).toString(16).slice(-4)}`))
  },
  call_characters_escaped: {
    spoils: "accents in the arguments of calls are escaped twice",
    seams: inCalls((text) => text.replace(/[\u00c0-\u024f]/gu, (character) => `\\\\\\\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`))
  },
  call_closed_early_streamed: {
    spoils: "streamed arguments with emoji lose their last brace",
    seams: () => ({
      sending: (): Sending => {
        const state = { hasEmoji: false }
        return (text, part) => {
          if (part === "whole" || !text.includes('"arguments"')) return [text]
          state.hasEmoji ||= /[\u{10000}-\u{10ffff}]/u.test(text)
          return [state.hasEmoji ? text.replace(/("arguments":"(?:[^"\\]|\\.)*)\}"/, '$1"') : text]
        }
      }
    })
  },
  emoji_at_limit_lost: {
    spoils: "an emoji that the limit makes the last character of an answer is lost",
    seams: sent((text) => (text.includes('"finish_reason":"length"') ? text.replace(/[\u{10000}-\u{10ffff}]"/u, '"') : text))
  },
  logprob_bytes_cut: {
    spoils: "the bytes of reported tokens lose their highest bit",
    seams: sent((text) =>
      text.replace(
        /"bytes":\[([\d,]*)\]/g,
        (_, bytes: string) =>
          `"bytes":[${bytes
            .split(",")
            .map((byte) => (byte === "" ? "" : Number(byte) & 127))
            .join()}]`
      )
    )
  },
  stop_marks_dropped: {
    spoils: "combining characters of stop strings are ignored",
    seams: on("/v1/chat/completions", (fields) =>
      Array.isArray(fields.stop) ? { ...fields, stop: fields.stop.map((stop) => String(stop).replace(/\p{Mn}/gu, "")) } : fields
    )
  },
  echo_composed: {
    spoils: "repeated prompts are normalized to composed characters (NFC)",
    seams: on("/v1/completions", (fields) =>
      fields.echo === true && typeof fields.prompt === "string" ? { ...fields, prompt: fields.prompt.normalize("NFC") } : fields
    )
  }
}
