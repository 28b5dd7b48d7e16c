import { Data, Effect, Stream } from "effect"
import type { HttpClientResponse } from "effect/http"

/** An engine sends more than any sound answer has. */
export class AnswerTooLong extends Data.TaggedError("AnswerTooLong")<{ readonly most: number; readonly of: "bytes" | "values" }> {}

/** Bytes of an answer. The longest sound one has the log-probabilities of 131,072 tokens in less than 20 MB. */
const mostAnswerBytes = 24 * 2 ** 20

/**
 * Values of an answer, counted by the characters `{`, `[` and `,`. The longest sound one has five for each of 131,072
 * tokens: the object of a place and of its token, two further members, and the next place. A heap needs up to 180 bytes
 * for each, however short its text is: 135 MiB for this many.
 */
const mostAnswerValues = 6 * 131_072

/** Bytes of an engine's metrics. */
export const mostMetricsBytes = 4 * 2 ** 20

const [comma, list, object, newline] = [0x2c, 0x5b, 0x7b, 0x0a]

interface Counted {
  readonly bytes: number
  readonly values: number
}

/** Adds a chunk. `lineByLine`: each line is read alone, so only values of one line count together. */
const count = ({ bytes, values }: Counted, chunk: Uint8Array, lineByLine: boolean): Counted => {
  let [inLine, most] = [values, values]
  // `for ... of` takes six times as long.
  for (let at = 0; at < chunk.length; at++) {
    const byte = chunk[at]
    if (byte === comma || byte === list || byte === object) inLine++
    else if (lineByLine && byte === newline) {
      most = Math.max(most, inLine)
      inLine = 0
    }
  }
  return { bytes: bytes + chunk.length, values: most > mostAnswerValues ? most : inLine }
}

/**
 * The text of an answer in pieces. Fails if it is too long: all organizations share this process, so an engine that
 * runs hostile code must not fill its memory.
 */
const pieces = ({ stream }: HttpClientResponse.HttpClientResponse, mostBytes: number, lineByLine: boolean) =>
  stream.pipe(
    Stream.mapAccumEffect(
      () => ({ bytes: 0, values: 0 }),
      (before, chunk) => {
        const counted = count(before, chunk, lineByLine)
        if (counted.bytes > mostBytes) return Effect.fail(new AnswerTooLong({ most: mostBytes, of: "bytes" }))
        if (counted.values > mostAnswerValues) return Effect.fail(new AnswerTooLong({ most: mostAnswerValues, of: "values" }))
        return Effect.succeed([counted, [chunk]] as const)
      }
    ),
    Stream.decodeText
  )

/** The lines of a streamed answer. Fails if it is too long, or a line has too many values. */
export const answerLines = (response: HttpClientResponse.HttpClientResponse, mostBytes = mostAnswerBytes) =>
  Stream.splitLines(pieces(response, mostBytes, true))

/** The text of an answer. Fails if it is too long or has too many values. */
export const answerText = (response: HttpClientResponse.HttpClientResponse, mostBytes = mostAnswerBytes) => Stream.mkString(pieces(response, mostBytes, false))
