import type { OrgId } from "@seatrial/domain"
import { Data, Effect } from "effect"
import type { AbortReason, RequestAbort } from "../RequestAbort.ts"
import { FairQueue } from "../routing/FairQueue.ts"
import { FairShares } from "../routing/FairShares.ts"
import { LargeBodyProcess, type ProcessEnd } from "./LargeBodyProcess.ts"
import { decodeAnswer, encodeQuestion, type LargeBodyAnswer, type LargeBodyTask } from "./largeBody.ts"

/** The answer of a process, and the bytes that belong to it. */
export interface Answered {
  readonly answer: LargeBodyAnswer
  readonly body: Buffer
}

/**
 * No process answered. `memory`: the process ran out of memory, as the next one would. `lost`: two processes ended or
 * took too long, or none could start. `aborted`: the request was aborted.
 */
export class LargeBodyUnread extends Data.TaggedError("LargeBodyUnread")<{ readonly reason: "memory" | "lost" | "aborted" }> {}

const memory = new LargeBodyUnread({ reason: "memory" })
const lost = new LargeBodyUnread({ reason: "lost" })
const aborted = new LargeBodyUnread({ reason: "aborted" })

/** A body of a request or an answer. */
export interface ReceivedBody {
  readonly id: number
  readonly bytes: Uint8Array
  readonly orgId: OrgId
  readonly requestAbort: RequestAbort
  /** Whether the body is read also if the caller leaves or its key ends: the usage of a complete answer is in it. */
  readonly outlivesCaller: boolean
}

const callersReasons: ReadonlySet<AbortReason | null> = new Set<AbortReason>(["gone", "revoked"])

/** Whether no one needs the body any more. */
const isUnwanted = ({ outlivesCaller, requestAbort: { aborted, reason } }: ReceivedBody): boolean => aborted && !(outlivesCaller && callersReasons.has(reason))

const noBytes = new Uint8Array()

/** A question that waits for a process, or is being answered. */
interface Asking {
  readonly received: ReceivedBody
  readonly task: LargeBodyTask
  /** Whether a process ended during this question before, without running out of memory. */
  isRepeated: boolean
  /** Has no effect if the caller has left. */
  readonly settle: (answer: Effect.Effect<Answered, LargeBodyUnread>) => void
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

/**
 * Sends the questions of all organizations to one process. The organization that has used the least of its time goes
 * first. The process starts with the first question.
 */
export class LargeBodyLane {
  readonly #options: LaneOptions
  readonly #waiting = new FairQueue<Asking>()
  readonly #shares = new FairShares()
  /** The question that the process is answering. */
  #asking: Asking | null = null
  /** When the process began with it, by the monotonic clock. */
  #askedAt = 0
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
        this.#askedAt = performance.now()
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
    if (end === "memory") return this.#settle(memory)
    if (asking === null) return
    if (asking.isRepeated) return this.#settle(lost)
    asking.isRepeated = true
    this.#ask(asking)
  }

  #settle(answer: Effect.Effect<Answered, LargeBodyUnread>) {
    clearTimeout(this.#deadline)
    const asking = this.#asking
    this.#asking = null
    if (asking !== null) this.#shares.end(asking.received.orgId, performance.now() - this.#askedAt)
    // Usually the caller asks for the check of the parsed body within this call, before the next question.
    asking?.settle(answer)
    this.#next()
  }

  #ask(asking: Asking) {
    if (this.#isClosed) return
    this.#asking = asking
    this.#shares.begin(asking.received.orgId)
    this.#askedAt = performance.now()
    try {
      this.#process ??= this.#start()
    } catch {
      // The process cannot start, for example without free file descriptors. The next question is tried later.
      this.#asking = null
      asking.settle(lost)
      setTimeout(() => this.#next(), pauseMillis)
      return
    }
    const { received, task } = asking
    const isHeld = this.#holds(received, task)
    this.#heldId = task._tag === "Parse" ? received.id : null
    this.#process.ask({ head: encodeQuestion({ task, isHeld }), body: isHeld ? noBytes : received.bytes })
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
    const next = this.#waiting.takeLightest((org) => this.#shares.startOf(org))
    if (next === undefined) this.#shares.clear()
    else this.#ask(next)
  }

  /** Whether the process still holds the parsed body that the task needs. */
  #holds(received: ReceivedBody, task: LargeBodyTask): boolean {
    return task._tag === "Check" && this.#heldId === received.id
  }

  ask(received: ReceivedBody, task: LargeBodyTask): Effect.Effect<Answered, LargeBodyUnread> {
    const { requestAbort, orgId } = received
    return Effect.callback<Answered, LargeBodyUnread>((resume) => {
      const asking: Asking = {
        received,
        task,
        isRepeated: false,
        settle: (answer) => {
          requestAbort.removeEventListener("abort", onAbort)
          resume(answer)
        }
      }
      const leave = () => {
        this.#waiting.remove(orgId, asking)
        asking.settle(aborted)
      }
      const onAbort = () => {
        if (isUnwanted(received)) leave()
      }
      if (isUnwanted(received)) return leave()
      requestAbort.addEventListener("abort", onAbort)
      if (this.#asking === null && this.#holds(received, task)) this.#ask(asking)
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
