import type { InferencePath, OrgId } from "@seatrial/domain"
import { Context, Effect, Layer } from "effect"
import { abortRefusal } from "../abortRefusal.ts"
import type { ReadFrame, StreamOptions } from "../dialects/Dialect.ts"
import type { AnswerFormat, ParsedAnswer } from "../parseAnswer.ts"
import type { RequestAbort } from "../RequestAbort.ts"
import { invalidBody, Refusal, unavailable } from "../refusals.ts"
import type { Target } from "./Checking.ts"
import type { CheckedRequest } from "./checkRequest.ts"
import { type LaneOptions, LargeBodyLane, type LargeBodyUnread, type ReceivedBody } from "./LargeBodyLane.ts"
import { type LargeAnswerTask, parsedAnswerOf, readFrameOf } from "./largeAnswer.ts"
import { checkedRequestOf, type LargeBodyTask } from "./largeBody.ts"
import type { ParsedBody } from "./parseBody.ts"

/**
 * Bytes above which a separate process parses a body of a request or an answer, because that would block all other
 * requests.
 */
export const largeBody = 64 * 1024

/** A body that is parsed in another process. Only the members that routing needs are available here. */
export class LargeBody implements ParsedBody {
  readonly model: string
  readonly members: ParsedBody["members"]
  readonly check: (endpoint: InferencePath, target: Target) => Effect.Effect<CheckedRequest, Refusal>

  constructor({ members, model }: ParsedBody, check: LargeBody["check"]) {
    this.model = model
    this.members = members
    this.check = check
  }
}

/** Repeating it would crash another process. */
const needsTooMuchMemory = invalidBody("Parsing the body needs more memory than a request may use. Send fewer and longer values.")

const refusalOf = ({ reason }: LargeBodyUnread, requestAbort: RequestAbort): Refusal =>
  reason === "memory" ? needsTooMuchMemory : reason === "lost" ? unavailable : abortRefusal(requestAbort)

const defaults: LaneOptions = { program: new URL("./largeBodyProgram.ts", import.meta.url), heapMegabytes: 384, patienceMillis: 15_000 }

/** The options of a gateway's processes for large bodies. */
export const LargeBodyOptions = Context.Reference<LaneOptions>("seatrial/LargeBodyOptions", { defaultValue: () => defaults })

/** Bytes above which a body uses a separate lane, so that smaller bodies do not wait for it. */
const veryLarge = 1024 * 1024

const unexpected = (task: LargeBodyTask) => Effect.die(new Error(`a process gave the answer of another task than ${task._tag}`))

/** The request that an answer belongs to. */
interface AnswerOwner {
  readonly orgId: OrgId
  readonly requestAbort: RequestAbort
}

/**
 * Processes large bodies of requests and answers one after the other, with fair shares for organizations, in two
 * processes: one for bodies up to 1 MiB and one for larger ones.
 */
export class LargeBodyLanes {
  readonly #lanes: readonly [large: LargeBodyLane, veryLarge: LargeBodyLane]
  #nextId = 0

  constructor(options: Partial<LaneOptions> = {}) {
    this.#lanes = [new LargeBodyLane({ ...defaults, ...options }), new LargeBodyLane({ ...defaults, ...options })]
  }

  #ask(received: ReceivedBody, task: LargeBodyTask) {
    return this.#lanes[received.bytes.length > veryLarge ? 1 : 0].ask(received, task)
  }

  /** Parses or checks the body of a request. */
  #askRequest(received: ReceivedBody, task: LargeBodyTask) {
    const answered = Effect.mapError(this.#ask(received, task), (unread) => refusalOf(unread, received.requestAbort))
    return Effect.flatMap(answered, ({ answer, body }) => (answer._tag === "Refused" ? new Refusal(answer) : Effect.succeed({ answer, body })))
  }

  /** Parses the body of a request and returns its model, unless the request is aborted. */
  read(bytes: Uint8Array, orgId: OrgId, requestAbort: RequestAbort): Effect.Effect<LargeBody, Refusal> {
    const received: ReceivedBody = { id: this.#nextId++, bytes, orgId, requestAbort, outlivesCaller: false }
    const check: LargeBody["check"] = (endpoint, target) => {
      const task: LargeBodyTask = { _tag: "Check", endpoint, target }
      return Effect.flatMap(this.#askRequest(received, task), ({ answer, body }) =>
        answer._tag === "Checked" ? Effect.succeed(checkedRequestOf(endpoint, answer, body)) : unexpected(task)
      )
    }
    const task: LargeBodyTask = { _tag: "Parse" }
    return Effect.flatMap(this.#askRequest(received, task), ({ answer }) =>
      answer._tag === "Parsed" ? Effect.succeed(new LargeBody(answer.body, check)) : unexpected(task)
    )
  }

  #askAnswer(bytes: Buffer, { orgId, requestAbort }: AnswerOwner, task: LargeAnswerTask) {
    return this.#ask({ id: this.#nextId++, bytes, orgId, requestAbort, outlivesCaller: true }, task)
  }

  /** Parses the answer of an engine, also if its caller leaves: the answer says what the engine computed. */
  readAnswer(bytes: Buffer, format: AnswerFormat, owner: AnswerOwner): Effect.Effect<ParsedAnswer, LargeBodyUnread> {
    const task: LargeAnswerTask = { _tag: "ParseAnswer", format }
    return Effect.flatMap(this.#askAnswer(bytes, owner, task), ({ answer, body }) =>
      answer._tag === "ParsedAnswer" || answer._tag === "EngineError" ? Effect.succeed(parsedAnswerOf(answer, body, bytes)) : unexpected(task)
    )
  }

  /** Reads a frame of a stream, also if its caller leaves. `state`: of the stream's reader before it. */
  readFrame(
    frame: string,
    { endpoint, options, state }: { readonly endpoint: InferencePath; readonly options: StreamOptions; readonly state: string },
    owner: AnswerOwner
  ): Effect.Effect<ReadFrame, LargeBodyUnread> {
    const task: LargeAnswerTask = { _tag: "ReadFrame", endpoint, options, state }
    return Effect.flatMap(this.#askAnswer(Buffer.from(frame, "latin1"), owner, task), ({ answer, body }) =>
      answer._tag === "ReadFrame" ? Effect.succeed(readFrameOf(answer, body)) : unexpected(task)
    )
  }

  close(): void {
    for (const lane of this.#lanes) lane.close()
  }
}

/** The processes that parse the large bodies of a gateway. */
export class LargeBodies extends Context.Service<LargeBodies, LargeBodyLanes>()("seatrial/LargeBodies") {
  static readonly layer = Layer.effect(
    LargeBodies,
    Effect.gen(function* () {
      const options = yield* LargeBodyOptions
      return yield* Effect.acquireRelease(
        Effect.sync(() => new LargeBodyLanes(options)),
        (lanes) => Effect.sync(() => lanes.close())
      )
    })
  )
}
