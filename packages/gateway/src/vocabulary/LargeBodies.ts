import { Worker } from "node:worker_threads"
import type { InferencePath } from "@seatrial/domain"
import { Effect } from "effect"
import { Refusal } from "../refusals.ts"
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

/** Large bodies, one after the other, on a thread that starts with the first. */
export class LargeBodies {
  #thread: Worker | null = null
  #asked = 0
  readonly #waiting = new Map<number, (answer: Effect.Effect<LargeBodyAnswer>) => void>()

  #start(): Worker {
    const thread = new Worker(new URL("./largeBodyThread.ts", import.meta.url), { resourceLimits: { maxOldGenerationSizeMb: 512 } })
    thread.on("message", ({ answer, id }: { readonly id: number; readonly answer: LargeBodyAnswer }) => this.#waiting.get(id)?.(Effect.succeed(answer)))
    const end = (cause: unknown) => {
      if (this.#thread !== thread) return
      this.#thread = null
      for (const resume of this.#waiting.values()) resume(Effect.die(cause))
    }
    thread.on("error", end).on("exit", () => end(new Error("the thread of large bodies ended")))
    return thread
  }

  #ask(question: Pick<LargeBodyQuestion, "bytes" | "check">): Effect.Effect<Exclude<LargeBodyAnswer, { readonly _tag: "Refused" }>, Refusal> {
    return Effect.callback<LargeBodyAnswer>((resume) => {
      const id = ++this.#asked
      this.#waiting.set(id, (answer) => {
        this.#waiting.delete(id)
        resume(answer)
      })
      this.#thread ??= this.#start()
      this.#thread.postMessage({ ...question, id })
      return Effect.sync(() => this.#waiting.delete(id))
    }).pipe(Effect.flatMap((answer) => (answer._tag === "Refused" ? new Refusal(answer) : Effect.succeed(answer))))
  }

  /** Reads a body as far as the name of its model. */
  read(received: Uint8Array): Effect.Effect<LargeBody, Refusal> {
    // Both threads see the same bytes.
    const bytes = new SharedArrayBuffer(received.length)
    new Uint8Array(bytes).set(received)
    return Effect.flatMap(this.#ask({ bytes, check: null }), (answer) =>
      answer._tag === "Read"
        ? Effect.succeed(new LargeBody(answer.body, this.#checkOf(bytes)))
        : Effect.die(new Error("a body was checked that was to be read"))
    )
  }

  #checkOf(bytes: SharedArrayBuffer): LargeBody["check"] {
    return (endpoint, target) =>
      Effect.flatMap(this.#ask({ bytes, check: { endpoint, target } }), (answer) =>
        answer._tag === "Checked" ? Effect.succeed(answer.checked) : Effect.die(new Error("a body was read that was to be checked"))
      )
  }

  close(): Effect.Effect<void> {
    return Effect.promise(async () => {
      const thread = this.#thread
      this.#thread = null
      await thread?.terminate()
    })
  }
}
