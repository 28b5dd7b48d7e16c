import { Worker } from "node:worker_threads"
import type { InferencePath, OrgId } from "@seatrial/domain"
import { Effect } from "effect"
import type { Departure } from "../Departure.ts"
import { departureRefusal } from "../departureRefusal.ts"
import { Refusal } from "../refusals.ts"
import { FairQueue } from "../routing/FairQueue.ts"
import type { Target } from "./Checking.ts"
import type { CheckedRequest } from "./checkRequest.ts"
import type { LargeBodyAnswer, LargeBodyQuestion } from "./largeBody.ts"
import type { ParsedBody } from "./parseBody.ts"

/** Bytes from which a body is read, checked and written by a thread of its own: 4 MB would keep all other requests waiting for 15 ms. */
export const largeBody = 1024 * 1024

/** A body that another thread reads: what is known of it here is what routing needs. */
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

/** What the thread is asked for somebody. */
interface Asking {
  readonly question: LargeBodyQuestion
  /** Nobody waits any more where it has ended. */
  readonly answer: (answer: Effect.Effect<LargeBodyAnswer, Refusal>) => void
}

/** Large bodies, one after the other and organisations in turns, on a thread that starts with the first. */
export class LargeBodies {
  readonly #program: URL
  readonly #waiting = new FairQueue<Asking>()
  /** What the thread works on. */
  #asking: Asking | null = null
  #thread: Worker | null = null
  #closed = false

  constructor(program = new URL("./largeBodyThread.ts", import.meta.url)) {
    this.#program = program
  }

  #start(): Worker {
    const thread = new Worker(this.#program, { resourceLimits: { maxOldGenerationSizeMb: 512 } })
    thread.on("message", (answer: LargeBodyAnswer) => this.#settle(Effect.succeed(answer)))
    const end = (cause: unknown) => {
      if (this.#thread !== thread) return
      this.#thread = null
      // The others go on with a thread anew: it is this body that ended it, or nobody's.
      this.#settle(Effect.die(cause))
    }
    thread.on("error", end).on("exit", () => end(new Error("the thread of large bodies ended")))
    return thread
  }

  #settle(answer: Effect.Effect<LargeBodyAnswer>) {
    this.#asking?.answer(answer)
    this.#asking = null
    this.#next()
  }

  #next() {
    if (this.#asking !== null || this.#closed) return
    const next = this.#waiting.take()
    if (next === undefined) return
    this.#asking = next
    this.#thread ??= this.#start()
    this.#thread.postMessage(next.question)
  }

  #ask(question: Asking["question"], orgId: OrgId, departure: Departure): Effect.Effect<Exclude<LargeBodyAnswer, { readonly _tag: "Refused" }>, Refusal> {
    return Effect.callback<LargeBodyAnswer, Refusal>((resume) => {
      const asking: Asking = {
        question,
        answer: (answer) => {
          departure.removeEventListener("abort", leave)
          resume(answer)
        }
      }
      const leave = () => {
        this.#waiting.remove(orgId, asking)
        asking.answer(Effect.fail(departureRefusal(departure)))
      }
      if (departure.aborted) return leave()
      departure.addEventListener("abort", leave)
      this.#waiting.add(orgId, asking)
      this.#next()
      return Effect.sync(leave)
    }).pipe(Effect.flatMap((answer) => (answer._tag === "Refused" ? new Refusal(answer) : Effect.succeed(answer))))
  }

  /** Reads a body as far as the name of its model, for as long as there is somebody to answer. */
  read(received: Uint8Array, orgId: OrgId, departure: Departure): Effect.Effect<LargeBody, Refusal> {
    // Both threads see the same bytes.
    const bytes = new SharedArrayBuffer(received.length)
    new Uint8Array(bytes).set(received)
    const check: LargeBody["check"] = (endpoint, target) =>
      Effect.flatMap(this.#ask({ bytes, check: { endpoint, target } }, orgId, departure), (answer) =>
        answer._tag === "Checked" ? Effect.succeed(answer.checked) : Effect.die(new Error("a body was read that was to be checked"))
      )
    return Effect.flatMap(this.#ask({ bytes, check: null }, orgId, departure), (answer) =>
      answer._tag === "Read" ? Effect.succeed(new LargeBody(answer.body, check)) : Effect.die(new Error("a body was checked that was to be read"))
    )
  }

  close(): Effect.Effect<void> {
    return Effect.promise(async () => {
      this.#closed = true
      const thread = this.#thread
      this.#thread = null
      await thread?.terminate()
    })
  }
}
