import { Data, Effect, Stream } from "effect"
import type { HttpClientResponse } from "effect/http"

/** An engine sends more than any sound answer has. */
export class AnswerTooLong extends Data.TaggedError("AnswerTooLong")<{ readonly mostBytes: number }> {}

/** Bytes of an answer. The longest sound one has the log-probabilities of 131,072 tokens in less than 20 MB. */
const mostAnswerBytes = 24 * 2 ** 20

/** Bytes of an engine's metrics. */
export const mostMetricsBytes = 4 * 2 ** 20

/**
 * The text of an answer in pieces. Fails if it is too long: all organizations share this process, so an engine that
 * runs hostile code must not fill its memory.
 */
export const answerPieces = ({ stream }: HttpClientResponse.HttpClientResponse, mostBytes = mostAnswerBytes) =>
  stream.pipe(
    Stream.mapAccumEffect(
      () => 0,
      (before, chunk) => {
        const read = before + chunk.length
        return read > mostBytes ? Effect.fail(new AnswerTooLong({ mostBytes })) : Effect.succeed([read, [chunk]] as const)
      }
    ),
    Stream.decodeText
  )

/** The text of an answer. Fails if it is too long. */
export const answerText = (response: HttpClientResponse.HttpClientResponse, mostBytes?: number) => Stream.mkString(answerPieces(response, mostBytes))
