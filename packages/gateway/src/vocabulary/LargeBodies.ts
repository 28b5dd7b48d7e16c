import type { InferencePath, OrgId } from "@seatrial/domain"
import { Context, Effect } from "effect"
import { abortRefusal } from "../abortRefusal.ts"
import type { RequestAbort } from "../RequestAbort.ts"
import { invalidBody, Refusal, unavailable } from "../refusals.ts"
import { FairQueue } from "../routing/FairQueue.ts"
import type { Target } from "./Checking.ts"
import type { CheckedRequest } from "./checkRequest.ts"
import { LargeBodyProcess, type ProcessEnd } from "./LargeBodyProcess.ts"
import { checkedRequestOf, decodeAnswer, encodeQuestion, type LargeBodyAnswer, type LargeBodyCheck, type LargeBodyQuestion } from "./largeBody.ts"
import type { ParsedBody } from "./parseBody.ts"

/**
 * Bytes above which a separate process parses, checks and serializes a body, because that would block all other
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

type Answered = { readonly answer: LargeBodyAnswer; readonly body: Buffer }

interface ReceivedBody {
  readonly id: number
  readonly bytes: Uint8Array
  readonly orgId: OrgId
  readonly requestAbort: RequestAbort
}

const noBytes = new Uint8Array()

/** A question that waits for a process, or is being answered. */
interface Asking {
  readonly received: ReceivedBody
  readonly check: LargeBodyCheck
  /** Whether a process ended during this question before, without running out of memory. */
  isRepeated: boolean
  /** Has no effect if the caller has left. */
  readonly settle: (answer: Effect.Effect<Answered, Refusal>) => void
}

export interface LaneOptions {
  readonly program: URL
  readonly heapMegabytes: number
  /** Milliseconds that an answer may take. */
  readonly patienceMillis: number
}

/** Milliseconds in which a process must start. */
const startMillis = 30_000

/** Milliseconds until the next attempt to start a process after a failure. */
const pauseMillis = 100

/** Sends the questions of all organizations to one process, round-robin. The process starts with the first question. */
class Lane {
  readonly #options: LaneOptions
  readonly #waiting = new FairQueue<Asking>()
  /** The question that the process is answering. */
  #asking: Asking | null = null
  #process: LargeBodyProcess | null = null
  /** The body that the process parsed last and still holds. */
  #heldId: number | null = null
  #deadline: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: LaneOptions) {
    this.#options = options
  }

  #start(): LargeBodyProcess {
    let started: LargeBodyProcess | undefined
    // Output of a process that was replaced does not answer the current question.
    const isCurrent = () => started !== undefined && this.#process === started
    started = new LargeBodyProcess({
      ...this.#options,
      onAnswer: ({ body, head }) => {
        if (isCurrent()) this.#settle(Effect.sync(() => ({ answer: decodeAnswer(head), body })))
      },
      onReady: () => {
        if (isCurrent() && this.#asking !== null) this.#setDeadline(this.#asking)
      },
      onEnd: (end) => {
        if (!isCurrent()) return
        this.#process = null
        this.#heldId = null
        this.#recover(end)
      }
    })
    return started
  }

  /** Handles the end of the process. The question is repeated once in a new process, unless it used up the memory. */
  #recover(end: ProcessEnd) {
    const asking = this.#asking
    if (end === "memory") return this.#settle(Effect.fail(needsTooMuchMemory))
    if (asking === null) return
    if (asking.isRepeated) return this.#settle(Effect.fail(unavailable))
    asking.isRepeated = true
    this.#ask(asking)
  }

  #settle(answer: Effect.Effect<Answered, Refusal>) {
    clearTimeout(this.#deadline)
    const asking = this.#asking
    this.#asking = null
    // Usually the caller asks for the check of the parsed body within this call, before the next question.
    asking?.settle(answer)
    this.#next()
  }

  #ask(asking: Asking) {
    if (this.#isClosed) return
    this.#asking = asking
    try {
      this.#process ??= this.#start()
    } catch {
      // The process cannot start, for example without free file descriptors. The next question is tried later.
      this.#asking = null
      asking.settle(Effect.fail(unavailable))
      setTimeout(() => this.#next(), pauseMillis)
      return
    }
    const { check, received } = asking
    const isHeld = check !== null && this.#heldId === received.id
    this.#heldId = check === null ? received.id : null
    const question: LargeBodyQuestion = { check, isHeld }
    this.#process.ask({ head: encodeQuestion(question), body: isHeld ? noBytes : received.bytes })
    this.#setDeadline(asking)
  }

  /** Kills the process if it takes too long. Its start has a separate time limit. */
  #setDeadline(asking: Asking) {
    clearTimeout(this.#deadline)
    const millis = this.#options.patienceMillis + (this.#process?.isReady === true ? 0 : startMillis)
    this.#deadline = setTimeout(() => {
      asking.isRepeated = true
      this.#process?.kill()
    }, millis)
  }

  #next() {
    if (this.#asking !== null) return
    const next = this.#waiting.take()
    if (next !== undefined) this.#ask(next)
  }

  ask(received: ReceivedBody, check: LargeBodyCheck): Effect.Effect<Answered, Refusal> {
    const { requestAbort, orgId } = received
    return Effect.callback<Answered, Refusal>((resume) => {
      const asking: Asking = {
        received,
        check,
        isRepeated: false,
        settle: (answer) => {
          requestAbort.removeEventListener("abort", leave)
          resume(answer)
        }
      }
      const leave = () => {
        this.#waiting.remove(orgId, asking)
        asking.settle(Effect.fail(abortRefusal(requestAbort)))
      }
      if (requestAbort.aborted) return leave()
      requestAbort.addEventListener("abort", leave)
      if (this.#asking === null && check !== null && this.#heldId === received.id) this.#ask(asking)
      else {
        this.#waiting.add(orgId, asking)
        this.#next()
      }
      return Effect.sync(leave)
    })
  }

  close() {
    this.#isClosed = true
    clearTimeout(this.#deadline)
    const last = this.#process
    this.#process = null
    last?.kill()
  }
}

const defaults: LaneOptions = { program: new URL("./largeBodyProgram.ts", import.meta.url), heapMegabytes: 384, patienceMillis: 15_000 }

/** The options of a gateway's processes for large bodies. */
export const LargeBodyOptions = Context.Reference<LaneOptions>("seatrial/LargeBodyOptions", { defaultValue: () => defaults })

/** Bytes above which a body uses a separate lane, so that smaller bodies do not wait for it. */
const veryLarge = 1024 * 1024

/**
 * Processes large bodies one after the other, round-robin by organization, in two processes: one for bodies up to 1 MiB
 * and one for larger ones.
 */
export class LargeBodies {
  readonly #lanes: readonly [large: Lane, veryLarge: Lane]
  #nextId = 0

  constructor(options: Partial<LaneOptions> = {}) {
    this.#lanes = [new Lane({ ...defaults, ...options }), new Lane({ ...defaults, ...options })]
  }

  #ask(received: ReceivedBody, check: LargeBodyCheck) {
    const answered = this.#lanes[received.bytes.length > veryLarge ? 1 : 0].ask(received, check)
    return Effect.flatMap(answered, ({ answer, body }) => (answer._tag === "Refused" ? new Refusal(answer) : Effect.succeed({ answer, body })))
  }

  /** Parses a body and returns its model, unless the request is aborted. */
  read(bytes: Uint8Array, orgId: OrgId, requestAbort: RequestAbort): Effect.Effect<LargeBody, Refusal> {
    const received: ReceivedBody = { id: this.#nextId++, bytes, orgId, requestAbort }
    const check: LargeBody["check"] = (endpoint, target) =>
      Effect.flatMap(this.#ask(received, { endpoint, target }), ({ answer, body }) =>
        answer._tag === "Checked" ? Effect.succeed(checkedRequestOf(endpoint, answer, body)) : Effect.die(new Error("a body was read that was to be checked"))
      )
    return Effect.flatMap(this.#ask(received, null), ({ answer }) =>
      answer._tag === "Read" ? Effect.succeed(new LargeBody(answer.body, check)) : Effect.die(new Error("a body was checked that was to be read"))
    )
  }

  close(): void {
    for (const lane of this.#lanes) lane.close()
  }
}
