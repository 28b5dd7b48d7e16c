import { Duration, Effect, Option, Result, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { type Answer, decodeFrame, decodeWhole, EngineUnreachable, reasoningOf, type StreamedAnswer, Unexpected } from "./engineAnswers.ts"
import { gauge } from "./gauge.ts"
import { monotonicMillis } from "./monotonicMillis.ts"
import { StreamCollector } from "./StreamCollector.ts"

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

/** Time limit for reading the counters. A computing engine answers this in parallel. */
const lookFor = Duration.seconds(5)

/**
 * Factor by which the silence limit is extended if the counters cannot be read: a busy engine may fail to report them.
 */
const unreadPatience = 3

/**
 * Metrics that move while an engine computes. SGLang counts `realtime_tokens` with each batch, and other tokens only at
 * the end of a request. vLLM counts the tokens of a prompt only once all of it is processed; until then its KV cache
 * usage grows.
 */
const counters = [
  ...["prompt_tokens_total", "generation_tokens_total", "num_preemptions_total", "kv_cache_usage_perc"].map((name) => `vllm:${name}`),
  ...["realtime_tokens_total", "prompt_tokens_total", "generation_tokens_total", "num_retracted_requests_total", "token_usage"].map((name) => `sglang:${name}`)
].join("|")

/** The sum of the engine's work since its start, for all clients. */
const workDone = (metrics: string) => gauge(metrics, counters)

/**
 * A client for one engine. Nothing that it sends is stored or logged. An exchange fails if for `timeout` the engine has
 * sent nothing to any exchange of this client, and its counters show no processed tokens. A request that waits while
 * others are answered is queued in the engine, and an engine that computes slowly is only slow. The caller limits the
 * total time of an exchange.
 */
export const makeEngineClient = Effect.fnUntraced(function* (
  url: string,
  timeout: Duration.Input
): Effect.fn.Return<EngineClient, never, HttpClient.HttpClient> {
  const http = yield* HttpClient.HttpClient

  const silentFor = Math.round(Duration.toSeconds(Duration.fromInputUnsafe(timeout)))
  const silent = () => Effect.fail(new EngineUnreachable({ message: `The engine did not answer within ${silentFor} seconds.`, silentFor }))
  let heardAt = Number.NEGATIVE_INFINITY
  const heard = Effect.map(monotonicMillis, (at) => {
    heardAt = at
    return at
  })
  let done: number | null = null
  // Shared by all waiting exchanges. Succeeds with whether the counters could be read.
  const look = yield* Effect.cachedWithTTL(
    http.execute(HttpClientRequest.get(`${url}/metrics`)).pipe(
      Effect.flatMap((response) => response.text),
      Effect.timeout(lookFor),
      Effect.orElseSucceed(() => null),
      Effect.flatMap((metrics) => {
        const now = metrics === null ? null : workDone(metrics)
        const moved = now !== null && now !== done
        done = now ?? done
        return Effect.as(moved ? heard : Effect.void, metrics !== null)
      })
    ),
    "1 second"
  )
  // Reads the counters in the middle and at the end of a silence: each read costs an engine that answers nothing.
  const silence = Effect.gen(function* () {
    const begunAt = yield* monotonicMillis
    const quiet = Effect.map(monotonicMillis, (at) => at - Math.max(begunAt, heardAt))
    const limitMillis = silentFor * 1_000
    let hasRead = false
    while (true) {
      const spent = yield* quiet
      if (spent < limitMillis / 2) {
        hasRead = false
        yield* Effect.sleep(limitMillis / 2 - spent)
      } else if (!hasRead) {
        hasRead = true
        yield* look
      } else if (spent < limitMillis) yield* Effect.sleep(limitMillis - spent)
      else {
        const isRead = yield* look
        if ((yield* quiet) >= limitMillis * (isRead ? 1 : unreadPatience)) return yield* silent()
        if (!isRead) yield* Effect.sleep(limitMillis / 2)
      }
    }
  })
  const bounded = <A, E>(exchange: Effect.Effect<A, E>) => Effect.raceFirst(exchange, silence)
  const unreachable = () => new EngineUnreachable({ message: "The engine could not be reached." })
  const read = (request: HttpClientRequest.HttpClientRequest) =>
    http.execute(request).pipe(
      Effect.flatMap((response) => Effect.map(response.text, (text) => ({ status: response.status, text }))),
      Effect.mapError(unreachable),
      Effect.tap(heard),
      bounded
    )
  const posted = (path: string, body: string) => HttpClientRequest.post(`${url}${path}`).pipe(HttpClientRequest.bodyText(body, "application/json"))
  const refused = (status: number) => new Unexpected({ detail: `HTTP ${status} for a good request`, status })

  return {
    lastSignAt: Effect.map(look, () => heardAt),
    get: (path) => read(HttpClientRequest.get(`${url}${path}`)),
    post: (path, body) => read(posted(path, body)),
    ask: Effect.fnUntraced(function* (path, body) {
      const { status, text } = yield* read(posted(path, JSON.stringify(body)))
      if (status !== 200) return yield* refused(status)
      const decoded = decodeWhole(text)
      if (Option.isNone(decoded)) return yield* new Unexpected({ detail: "an answer without choices and usage" })
      const [choice] = decoded.value.choices
      return {
        content: choice.message?.content ?? choice.text ?? "",
        reasoning: reasoningOf(choice.message),
        finishReason: choice.finish_reason ?? null,
        usage: decoded.value.usage
      }
    }),
    stream: (path, body) =>
      Effect.gen(function* () {
        const sentAt = yield* monotonicMillis
        const request = posted(path, JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }))
        const response = yield* Effect.mapError(http.execute(request), unreachable)
        if (response.status !== 200) return yield* refused(response.status)
        const collector = new StreamCollector(sentAt)
        yield* response.stream.pipe(
          Stream.decodeText,
          Stream.splitLines,
          Stream.runForEach((line) => Effect.map(heard, (at) => collector.take(line, at))),
          Effect.mapError(unreachable)
        )
        return yield* collector.answer()
      }).pipe(bounded),
    firstPiece: (path, body) =>
      Effect.gen(function* () {
        const sentAt = yield* monotonicMillis
        const response = yield* Effect.mapError(http.execute(posted(path, JSON.stringify({ ...body, stream: true }))), unreachable)
        if (response.status !== 200) return yield* refused(response.status)
        const first = yield* response.stream.pipe(
          Stream.decodeText,
          Stream.splitLines,
          Stream.filter((line) => line.startsWith("data:")),
          Stream.filterMap((line) => {
            const frame = Option.getOrNull(decodeFrame(line.slice(5).trim()))
            const choice = frame?.choices[0]
            const piece = (choice?.delta?.content ?? choice?.text ?? "") + reasoningOf(choice?.delta)
            return piece === "" && (choice?.delta?.tool_calls ?? []).length === 0 ? Result.fail(undefined) : Result.succeed(piece)
          }),
          Stream.runHead,
          Effect.mapError(unreachable)
        )
        if (Option.isNone(first)) return yield* new Unexpected({ detail: "a stream without a piece" })
        return (yield* monotonicMillis) - sentAt
      }).pipe(bounded)
  }
})
