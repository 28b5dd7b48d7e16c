import { dataOfLine, monotonicMillis, reasoningOf } from "@seatrial/domain"
import { Effect, Option, Stream } from "effect"
import { HttpClient, type HttpClientError, HttpClientRequest } from "effect/http"
import { type AnswerTooLong, answerLines, answerText, mostMetricsBytes } from "./answerText.ts"
import { type Answer, decodeFrame, decodeWhole, EngineUnreachable, type StreamedAnswer, Unexpected } from "./engineAnswers.ts"
import { StreamCollector } from "./StreamCollector.ts"
import { type EngineAddress, type SilenceWatch, watchSilence } from "./watchSilence.ts"

export interface EngineClient {
  /** Status and text of a GET. */
  readonly get: (path: string) => Effect.Effect<{ readonly status: number; readonly text: string }, EngineUnreachable>
  /** Status and text of a POST with this body. */
  readonly post: (path: string, body: string) => Effect.Effect<{ readonly status: number; readonly text: string }, EngineUnreachable>
  readonly ask: (path: string, body: object) => Effect.Effect<Answer, EngineUnreachable | Unexpected>
  readonly stream: (path: string, body: object) => Effect.Effect<StreamedAnswer, EngineUnreachable | Unexpected>
  /** Milliseconds until the first piece of a streamed answer. The stream is then closed. */
  readonly firstPiece: (path: string, body: object) => Effect.Effect<number, EngineUnreachable | Unexpected>
  /**
   * The time of the last answer or the last movement of a token counter, in monotonic milliseconds. Reads the counters.
   */
  readonly lastSignAt: Effect.Effect<number>
}

/** Sends a request that streams its answer. Fails for another status than 200. */
type OpenStream = (path: string, body: object) => Effect.Effect<ResponseStream, EngineUnreachable | Unexpected>
type ResponseStream = Stream.Stream<string, EngineUnreachable>

const unreachable = (error: HttpClientError.HttpClientError | AnswerTooLong) =>
  new EngineUnreachable({
    message: error._tag === "AnswerTooLong" ? `The engine's answer has more than ${error.most} ${error.of}.` : "The engine could not be reached."
  })
const refused = (status: number) => new Unexpected({ detail: `HTTP ${status} for a good request`, status })

const answerOf = (text: string): Effect.Effect<Answer, Unexpected> => {
  const decoded = decodeWhole(text)
  if (Option.isNone(decoded)) return Effect.fail(new Unexpected({ detail: "an answer without choices and usage" }))
  const [choice] = decoded.value.choices
  return Effect.succeed({
    content: choice.message?.content ?? choice.text ?? "",
    reasoning: reasoningOf(choice.message),
    finishReason: choice.finish_reason ?? null,
    usage: decoded.value.usage
  })
}

const collect = Effect.fnUntraced(function* (open: OpenStream, recordSign: SilenceWatch["recordSign"], path: string, body: object) {
  const sentAt = yield* monotonicMillis
  const lines = yield* open(path, { ...body, stream: true, stream_options: { include_usage: true } })
  const collector = new StreamCollector(sentAt)
  yield* Stream.runForEach(lines, (line) => Effect.map(recordSign, (at) => collector.take(line, at)))
  return yield* collector.answer()
})

/** Whether a line of a stream contains a piece of an answer: text, reasoning or a tool call. */
const hasPiece = (line: string): boolean => {
  const frame = Option.getOrNull(decodeFrame(dataOfLine(line)))
  const choice = frame?.choices[0]
  const piece = (choice?.delta?.content ?? choice?.text ?? "") + reasoningOf(choice?.delta)
  return piece !== "" || (choice?.delta?.tool_calls ?? []).length > 0
}

const millisToFirstPiece = Effect.fnUntraced(function* (open: OpenStream, path: string, body: object) {
  const sentAt = yield* monotonicMillis
  const lines = yield* open(path, { ...body, stream: true })
  const first = yield* Stream.runHead(Stream.filter(lines, hasPiece))
  if (Option.isNone(first)) return yield* new Unexpected({ detail: "a stream without a piece" })
  return (yield* monotonicMillis) - sentAt
})

/**
 * A client for one engine. Nothing that it sends is stored or logged. An exchange fails if for `timeout` the engine has
 * sent nothing to any exchange of this client, and its counters show no processed tokens. A request that waits while
 * others are answered is queued in the engine, and an engine that computes slowly is only slow. The caller limits the
 * total time of an exchange.
 */
export const makeEngineClient = Effect.fnUntraced(function* (address: EngineAddress): Effect.fn.Return<EngineClient, never, HttpClient.HttpClient> {
  const http = yield* HttpClient.HttpClient
  const { bounded, recordSign, lastSignAt } = yield* watchSilence(http, address)
  const read = (request: HttpClientRequest.HttpClientRequest, mostBytes = address.mostBytes) =>
    http.execute(request).pipe(
      Effect.flatMap((response) => Effect.map(answerText(response, mostBytes), (text) => ({ status: response.status, text }))),
      Effect.mapError(unreachable),
      Effect.tap(recordSign),
      bounded
    )
  const posted = (path: string, body: string) => HttpClientRequest.post(`${address.url}${path}`).pipe(HttpClientRequest.bodyText(body, "application/json"))
  const open: OpenStream = Effect.fnUntraced(function* (path, body) {
    const response = yield* Effect.mapError(http.execute(posted(path, JSON.stringify(body))), unreachable)
    if (response.status !== 200) return yield* refused(response.status)
    return Stream.mapError(answerLines(response, address.mostBytes), unreachable)
  })
  return {
    lastSignAt,
    get: (path) => read(HttpClientRequest.get(`${address.url}${path}`), Math.min(mostMetricsBytes, address.mostBytes ?? mostMetricsBytes)),
    post: (path, body) => read(posted(path, body)),
    ask: Effect.fnUntraced(function* (path, body) {
      const { status, text } = yield* read(posted(path, JSON.stringify(body)))
      return yield* status === 200 ? answerOf(text) : refused(status)
    }),
    stream: (path, body) => bounded(collect(open, recordSign, path, body)),
    firstPiece: (path, body) => bounded(millisToFirstPiece(open, path, body))
  }
})
