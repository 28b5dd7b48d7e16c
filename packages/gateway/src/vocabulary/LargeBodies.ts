import type { InferencePath, OrgId } from "@seatrial/domain"
import { Effect } from "effect"
import { abortRefusal } from "../abortRefusal.ts"
import type { RequestAbort } from "../RequestAbort.ts"
import { invalidBody, Refusal, unavailable } from "../refusals.ts"
import { FairQueue } from "../routing/FairQueue.ts"
import type { Target } from "./Checking.ts"
import type { CheckedRequest } from "./checkRequest.ts"
import { LargeBodyProcess, type ProcessEnd } from "./LargeBodyProcess.ts"
import { decodeAnswer, encodeQuestion, type LargeBodyAnswer, type LargeBodyCheck, type LargeBodyQuestion } from "./largeBody.ts"
import type { ParsedBody } from "./parseBody.ts"

/** Bytes above which a body is parsed, checked and written by a process of its own: a longer one would keep all other requests waiting. */
export const largeBody = 64 * 1024

/** A body that another process reads: what is known of it here is what routing needs. */
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

/** Sent again, it would end another process. */
const needsTooMuchMemory = invalidBody("The body needs more memory to be parsed than a request may take. Send fewer and longer values.")

type Answered = { readonly answer: LargeBodyAnswer; readonly body: Buffer }

interface ReceivedBody {
  readonly id: number
  readonly bytes: Uint8Array
  readonly orgId: OrgId
  readonly requestAbort: RequestAbort
}

const noBytes = new Uint8Array()

/** A question that a process answers for a caller. */
interface Asking {
  readonly received: ReceivedBody
  readonly check: LargeBodyCheck
  /** Whether a process has ended on it, for no reason of its own. */
  isRepeated: boolean
  /** Without effect if the caller has left. */
  readonly settle: (answer: Effect.Effect<Answered, Refusal>) => void
}

export interface LaneOptions {
  readonly program: URL
  readonly heapMegabytes: number
  /** Milliseconds that an answer may take. */
  readonly patienceMillis: number
}

/** Milliseconds in which a process must have started. */
const startMillis = 30_000

/** Milliseconds until a process is started again after none could be. */
const pauseMillis = 100

/** Questions of all organizations, in turns, to one process, which starts with the first. */
class Lane {
  readonly #options: LaneOptions
  readonly #waiting = new FairQueue<Asking>()
  /** What the process works on. */
  #asking: Asking | null = null
  #process: LargeBodyProcess | null = null
  /** The body that the process has read last and holds. */
  #heldId: number | null = null
  #deadline: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: LaneOptions) {
    this.#options = options
  }

  #start(): LargeBodyProcess {
    let started: LargeBodyProcess | undefined
    // What a process that was given up still writes belongs to no question of its successor.
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

  /** The process ended. Others go on with a new one; so does this question, once, unless it was what the memory was for. */
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
    // What was read is mostly checked at once: within this call.
    asking?.settle(answer)
    this.#next()
  }

  #ask(asking: Asking) {
    if (this.#isClosed) return
    this.#asking = asking
    try {
      this.#process ??= this.#start()
    } catch {
      // Without free descriptors no process starts. Others are asked again in a moment.
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

  /** A process that takes too long is killed. The time of its start does not count. */
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

/** Bytes above which a body waits in a lane of its own, so that those below are not behind it. */
const veryLarge = 1024 * 1024

/** Large bodies, one after the other and organizations in turns, in two processes: one for those of at most 1 MiB. */
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

  /** Reads a body as far as the name of its model, as long as there is a caller to answer. */
  read(bytes: Uint8Array, orgId: OrgId, requestAbort: RequestAbort): Effect.Effect<LargeBody, Refusal> {
    const received: ReceivedBody = { id: this.#nextId++, bytes, orgId, requestAbort }
    const check: LargeBody["check"] = (endpoint, target) =>
      Effect.flatMap(this.#ask(received, { endpoint, target }), ({ answer, body }) =>
        answer._tag === "Checked"
          ? Effect.succeed({ ...answer.checked, endpoint, imageCount: 0, withoutImages: null, engineBody: body.toString(answer.isAscii ? "latin1" : "utf8") })
          : Effect.die(new Error("a body was read that was to be checked"))
      )
    return Effect.flatMap(this.#ask(received, null), ({ answer }) =>
      answer._tag === "Read" ? Effect.succeed(new LargeBody(answer.body, check)) : Effect.die(new Error("a body was checked that was to be read"))
    )
  }

  close(): void {
    for (const lane of this.#lanes) lane.close()
  }
}
