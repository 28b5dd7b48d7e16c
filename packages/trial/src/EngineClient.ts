import type { CheckOutcome } from "@seatrial/domain"
import { Data, Duration, Effect, Option, Result, Schema, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { gauge } from "./gauge.ts"
import { monotonicMillis } from "./monotonicMillis.ts"

/** The engine could not be reached, or did not answer in time. */
export class EngineUnreachable extends Data.TaggedError("EngineUnreachable")<{
  readonly message: string
  /**
   * The seconds that the client waited, if the engine accepted the connection but sent nothing; absent if it could not
   * be reached.
   */
  readonly silentFor?: number
}> {}

/** The engine gave an unexpected answer. `detail`: numbers and codes only, never generated text. */
export class Unexpected extends Data.TaggedError("Unexpected")<{
  readonly detail: string
  /** Whether the second attempt decides, because the check judges a share over both attempts. */
  readonly open?: boolean
  /** The failure code, if the check determines it more exactly than its name does. */
  readonly code?: CheckOutcome["code"]
  readonly cause?: CheckOutcome["cause"]
  /** The HTTP status, if it was unexpected. */
  readonly status?: number
}> {}

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Usage = Schema.Struct({ prompt_tokens: Count, completion_tokens: Count, total_tokens: Count })
export type Usage = typeof Usage.Type

const text = Schema.optionalKey(Schema.NullOr(Schema.String))
const CallPiece = Schema.Struct({
  index: Schema.optionalKey(Schema.NullOr(Schema.Int)),
  id: text,
  function: Schema.optionalKey(Schema.NullOr(Schema.Struct({ name: text, arguments: text })))
})
const Part = Schema.Struct({
  role: text,
  content: text,
  reasoning: text,
  reasoning_content: text,
  tool_calls: Schema.optionalKey(Schema.NullOr(Schema.Array(CallPiece)))
})
const Choice = Schema.Struct({ text, message: Schema.optionalKey(Part), delta: Schema.optionalKey(Part), finish_reason: text })
const Whole = Schema.fromJsonString(Schema.Struct({ choices: Schema.NonEmptyArray(Choice), usage: Usage }))
const Frame = Schema.fromJsonString(Schema.Struct({ choices: Schema.Array(Choice), usage: Schema.optionalKey(Schema.NullOr(Usage)) }))
const decodeWhole = Schema.decodeUnknownOption(Whole)
const decodeFrame = Schema.decodeUnknownOption(Frame)

export interface Answer {
  readonly content: string
  readonly reasoning: string
  readonly finishReason: string | null
  readonly usage: Usage
}

/** A tool call. `arguments` is JSON text. */
export interface Call {
  readonly id?: string | null
  readonly function: { readonly name: string; readonly arguments: string }
}

/** A streamed answer with the properties that only a stream has. Times are monotonic milliseconds. */
export interface StreamedAnswer extends Answer {
  readonly sentAt: number
  /** The time of each piece of content or reasoning. */
  readonly arrivals: ReadonlyArray<number>
  readonly roles: number
  readonly finishReasons: number
  readonly usageFrames: number
  readonly toolCalls: ReadonlyArray<Call>
  /** The numbers by which clients assemble the parts of calls: 0, 1, 2, in this order. */
  readonly callNumbers: ReadonlyArray<number>
  /** Whether `[DONE]` came exactly once, with nothing after it. */
  readonly done: boolean
}

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

const reasoningOf = (part: typeof Part.Type | undefined) => part?.reasoning ?? part?.reasoning_content ?? ""

/** Collects the frames of one stream. */
const makeCollector = (sentAt: number) => {
  const arrivals: Array<number> = []
  let content = ""
  let reasoning = ""
  let roles = 0
  let finishReasons = 0
  let usageFrames = 0
  let dones = 0
  let after = 0
  let finishReason: string | null = null
  let usage: Usage | null = null
  let unreadable = 0
  const calls = new Map<number, { id: string | null; name: string; arguments: string }>()
  return {
    take: (line: string, at: number): void => {
      if (!line.startsWith("data:")) return
      const data = line.slice(5).trim()
      if (dones > 0) after++
      if (data === "[DONE]") {
        dones++
        return
      }
      const frame = decodeFrame(data)
      if (Option.isNone(frame)) {
        unreadable++
        return
      }
      const choice = frame.value.choices[0]
      if (frame.value.usage != null && frame.value.choices.length === 0) {
        usage = frame.value.usage
        usageFrames++
      }
      const piece = choice?.delta?.content ?? choice?.text ?? ""
      const thought = reasoningOf(choice?.delta)
      const pieces = choice?.delta?.tool_calls ?? []
      if (piece !== "" || thought !== "" || pieces.length > 0) arrivals.push(at)
      for (const [place, { function: part, id, index }] of pieces.entries()) {
        const call = calls.get(index ?? place) ?? { id: null, name: "", arguments: "" }
        calls.set(index ?? place, { id: id ?? call.id, name: call.name + (part?.name ?? ""), arguments: call.arguments + (part?.arguments ?? "") })
      }
      content += piece
      reasoning += thought
      if (choice?.delta?.role != null) roles++
      if (choice?.finish_reason != null) {
        finishReason = choice.finish_reason
        finishReasons++
      }
    },
    answer: (): Effect.Effect<StreamedAnswer, Unexpected> =>
      usage === null || unreadable > 0
        ? Effect.fail(new Unexpected({ detail: unreadable > 0 ? `${unreadable} unreadable frames` : "a stream without a usage chunk" }))
        : Effect.succeed({
            content,
            reasoning,
            finishReason,
            usage,
            sentAt,
            arrivals,
            roles,
            finishReasons,
            usageFrames,
            toolCalls: [...calls.values()].map(({ arguments: words, id, name }) => ({ id, function: { name, arguments: words } })),
            callNumbers: [...calls.keys()],
            done: dones === 1 && after === 0
          })
  }
}

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
        const collector = makeCollector(sentAt)
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
