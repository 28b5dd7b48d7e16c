import type { CheckOutcome } from "@seatrial/domain"
import { Data, Duration, Effect, Option, Result, Schema, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { gauge } from "./gauge.ts"
import { monotonicMillis } from "./monotonicMillis.ts"

/** The engine could not be reached, or did not answer in time. */
export class EngineUnreachable extends Data.TaggedError("EngineUnreachable")<{
  readonly message: string
  /** Seconds that it had, where it was there and did not answer; absent where it could not be reached. */
  readonly silentFor?: number
}> {}

/** The engine answered something else than it must. `detail`: numbers and codes only, never generated text. */
export class Unexpected extends Data.TaggedError("Unexpected")<{
  readonly detail: string
  /** Whether a second run decides: it is a share, which is judged over both. */
  readonly open?: boolean
  /** The failure that this is, if the check knows it better than its name says. */
  readonly code?: CheckOutcome["code"]
  readonly cause?: CheckOutcome["cause"]
  /** The HTTP status that came, if that is what was unexpected. */
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

/** A call of a tool; `arguments` is a text of JSON. */
export interface Call {
  readonly id?: string | null
  readonly function: { readonly name: string; readonly arguments: string }
}

/** A streamed answer, with what only a stream can get wrong. Times are monotonic milliseconds. */
export interface StreamedAnswer extends Answer {
  readonly sentAt: number
  /** When each piece of content or reasoning came. */
  readonly arrivals: ReadonlyArray<number>
  readonly roles: number
  readonly finishReasons: number
  readonly usageFrames: number
  readonly toolCalls: ReadonlyArray<Call>
  /** The numbers that its calls have in the stream, by which clients put their parts together: from 0 on, in their order. */
  readonly callNumbers: ReadonlyArray<number>
  /** Whether `[DONE]` came, once, and nothing after it. */
  readonly done: boolean
}

export interface EngineClient {
  /** Status and text of a GET. */
  readonly get: (path: string) => Effect.Effect<{ readonly status: number; readonly text: string }, EngineUnreachable>
  /** Status and text of a POST of that body as it is. */
  readonly post: (path: string, body: string) => Effect.Effect<{ readonly status: number; readonly text: string }, EngineUnreachable>
  readonly ask: (path: string, body: object) => Effect.Effect<Answer, EngineUnreachable | Unexpected>
  readonly stream: (path: string, body: object) => Effect.Effect<StreamedAnswer, EngineUnreachable | Unexpected>
  /** Milliseconds until the first piece of a streamed answer came; then the stream is closed, whatever was still to come. */
  readonly firstPiece: (path: string, body: object) => Effect.Effect<number, EngineUnreachable | Unexpected>
  /** When the engine last answered anything or moved a counter of tokens, in monotonic milliseconds. Reads its counters. */
  readonly lastSignAt: Effect.Effect<number>
}

/** How long an engine may take to tell its counters: one that computes tells them from beside its work. */
const lookFor = Duration.seconds(5)

/** How many times the usual silence ends an exchange with an engine whose counters cannot be read: one that is busy may not answer that either. */
const unreadPatience = 3

const reasoningOf = (part: typeof Part.Type | undefined) => part?.reasoning ?? part?.reasoning_content ?? ""

/** Collects the frames of one stream as they come. */
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
 * What moves as long as an engine computes. SGLang counts `realtime_tokens` with each batch, and other tokens only at the end of a request. vLLM counts the tokens of a
 * prompt only when all of it is read: until then its KV cache fills.
 */
const counters = [
  ...["prompt_tokens_total", "generation_tokens_total", "num_preemptions_total", "kv_cache_usage_perc"].map((name) => `vllm:${name}`),
  ...["realtime_tokens_total", "prompt_tokens_total", "generation_tokens_total", "num_retracted_requests_total", "token_usage"].map((name) => `sglang:${name}`)
].join("|")

/** What an engine has read, written and set aside since it started, whoever is answered. */
const workDone = (metrics: string) => gauge(metrics, counters)

/**
 * Speaks to one engine at its own address. Nothing that it sends is kept or logged. An exchange fails once the engine has sent none of this client's exchanges anything
 * for `timeout`, and has by its own counters read and written no token meanwhile: a request that waits while others are answered waits in the engine's queue, and one
 * that computes more slowly than it was thought to is slow. How long an exchange may take in all is the caller's to say.
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
  // All exchanges that wait share a look. It succeeds with whether the counters could be read.
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
  // It is looked at in the middle of a silence and at its end: that costs an engine that answers nothing.
  const silence = Effect.gen(function* () {
    const begunAt = yield* monotonicMillis
    const quiet = Effect.map(monotonicMillis, (at) => at - Math.max(begunAt, heardAt))
    const whole = silentFor * 1_000
    let looked = false
    while (true) {
      const spent = yield* quiet
      if (spent < whole / 2) {
        looked = false
        yield* Effect.sleep(whole / 2 - spent)
      } else if (!looked) {
        looked = true
        yield* look
      } else if (spent < whole) yield* Effect.sleep(whole - spent)
      else {
        const isRead = yield* look
        if ((yield* quiet) >= whole * (isRead ? 1 : unreadPatience)) return yield* silent()
        if (!isRead) yield* Effect.sleep(whole / 2)
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
      const whole = decodeWhole(text)
      if (Option.isNone(whole)) return yield* new Unexpected({ detail: "an answer without choices and usage" })
      const [choice] = whole.value.choices
      return {
        content: choice.message?.content ?? choice.text ?? "",
        reasoning: reasoningOf(choice.message),
        finishReason: choice.finish_reason ?? null,
        usage: whole.value.usage
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
            const said = (choice?.delta?.content ?? choice?.text ?? "") + reasoningOf(choice?.delta)
            return said === "" && (choice?.delta?.tool_calls ?? []).length === 0 ? Result.fail(undefined) : Result.succeed(said)
          }),
          Stream.runHead,
          Effect.mapError(unreachable)
        )
        if (Option.isNone(first)) return yield* new Unexpected({ detail: "a stream without a piece" })
        return (yield* monotonicMillis) - sentAt
      }).pipe(bounded)
  }
})
