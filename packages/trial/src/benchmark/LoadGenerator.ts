import { randomUUID } from "node:crypto"
import { Worker } from "node:worker_threads"
import { Data, Effect, Fiber, type Scope } from "effect"
import { greedy, type Subject, textPath } from "../Subject.ts"
import { now } from "./EngineConnection.ts"
import { isThreadAnswer, type Orders, sharedAt, sharedBytes, type ThreadAnswer, type ThreadMessage } from "./generatorWords.ts"
import type { RequestRecord, ThreadReport } from "./RequestRecord.ts"

/** The load generator itself broke: no fault of the engine. */
export class GeneratorFailed extends Data.TaggedError("GeneratorFailed")<{ readonly message: string }> {}

/** Streams that one thread keeps. */
const streamsPerThread = 16
/** How often it is looked whether a step is over, milliseconds: it ends only between two requests of a stream anyway. */
const glance = 20

/** How far a step has come. Times are milliseconds of the streams' own clock. */
export interface Progress {
  readonly elapsed: number
  readonly ended: number
  /** Looks at what came so far. */
  readonly peek: Effect.Effect<{ readonly firsts: ReadonlyArray<number>; readonly arrivals: ReadonlyArray<number>; readonly at: number }, GeneratorFailed>
}

export interface Load {
  readonly concurrency: number
  readonly outputTokens: number
  /** Requests of each stream at most; absent: any number. */
  readonly perStream?: number
  /** Asked again and again whether the streams are to send no more. */
  readonly isOver: (progress: Progress) => Effect.Effect<boolean, GeneratorFailed>
  /** How long what is under way then may take, milliseconds; what takes longer is cut. */
  readonly drainMillis: number
}

export interface LoadSeen {
  readonly records: ReadonlyArray<RequestRecord>
  /** When the first stream found no further request. */
  readonly closedAt: number
  /** When the last of what was under way had ended. */
  readonly endedAt: number
  readonly delayP99: number
}

export interface LoadGenerator {
  readonly run: (load: Load) => Effect.Effect<LoadSeen, GeneratorFailed>
}

type Thread = {
  readonly ask: (message: ThreadMessage, kind: ThreadAnswer["kind"]) => Effect.Effect<ThreadAnswer, GeneratorFailed>
  readonly tell: (message: ThreadMessage) => void
}

const startThread = Effect.fnUntraced(function* (orders: Orders): Effect.fn.Return<Thread, never, Scope.Scope> {
  const worker = yield* Effect.acquireRelease(
    Effect.sync(() => new Worker(new URL("generatorThread.ts", import.meta.url), { workerData: orders })),
    // Its sockets go with it, so that the engine ends what is under way.
    (running) => Effect.promise(() => running.terminate())
  )
  const tell = (message: ThreadMessage) => worker.postMessage(message)
  // One that was ended on purpose concerns nobody.
  worker.on("error", () => {})
  return {
    tell,
    ask: (message, kind) =>
      Effect.callback((resume) => {
        const end = (exit: Effect.Effect<ThreadAnswer, GeneratorFailed>) => {
          forget()
          resume(exit)
        }
        const failed = (words: string) => end(Effect.fail(new GeneratorFailed({ message: words })))
        const hear = (answer: unknown) => {
          if (!isThreadAnswer(answer)) return
          if (answer.kind === "fault") failed(answer.message)
          else if (answer.kind === kind) end(Effect.succeed(answer))
        }
        const broke = (fault: unknown) => failed(String(fault))
        const gone = () => failed("A thread of the load generator ended.")
        const forget = () => worker.off("message", hear).off("error", broke).off("exit", gone)
        worker.on("message", hear).once("error", broke).once("exit", gone)
        tell(message)
        return Effect.sync(forget)
      })
  }
})

/**
 * Streams of requests to one engine, in threads of their own, 16 streams each: a busy event loop would lengthen what it measures. They live as long as the scope. `most`:
 * streams of the largest load.
 */
export const makeLoadGenerator = Effect.fnUntraced(function* (
  url: string,
  subject: Pick<Subject, "servedName" | "vocabSize">,
  options: { readonly inputTokens: number; readonly firstSeed: number; readonly most: number }
): Effect.fn.Return<LoadGenerator, GeneratorFailed, Scope.Scope> {
  const { hostname, port } = new URL(url)
  const memory = new SharedArrayBuffer(sharedBytes)
  const shared = new Int32Array(memory)
  Atomics.store(shared, sharedAt.seed, options.firstSeed)
  const orders: Orders = {
    host: hostname.replace(/^\[(.*)\]$/, "$1"),
    port: Number(port === "" ? 80 : port),
    path: textPath,
    body: JSON.stringify({
      model: subject.servedName,
      ...greedy,
      // The prompts are the same each time: an engine that was asked before must compute them all the same.
      cache_salt: randomUUID(),
      ignore_eos: true,
      stream: true,
      stream_options: { include_usage: true }
    }).slice(0, -1),
    inputTokens: options.inputTokens,
    vocabSize: subject.vocabSize,
    startedAt: now(),
    shared: memory
  }
  const threads = yield* Effect.all(
    Array.from({ length: Math.ceil(options.most / streamsPerThread) }, () => startThread(orders)),
    { concurrency: "unbounded" }
  )
  // They are up once they answer: the time that it takes is none of a step's.
  yield* Effect.forEach(threads, (thread) => thread.ask({ kind: "peek" }, "peeked"), { concurrency: "unbounded" })

  const run = Effect.fnUntraced(function* ({ concurrency, drainMillis, isOver, outputTokens, perStream = Number.MAX_SAFE_INTEGER }: Load) {
    Atomics.store(shared, sharedAt.stop, 0)
    Atomics.store(shared, sharedAt.ended, 0)
    // Spread evenly, so that no thread has more to do than another.
    const used = threads.slice(0, Math.ceil(concurrency / streamsPerThread))
    const streamsOf = (index: number) => Array.from({ length: concurrency }, (_, stream) => stream).filter((stream) => stream % used.length === index)
    const startedAt = now()
    const reports = yield* Effect.forkChild(
      Effect.forEach(used, (thread, index) => thread.ask({ kind: "run", step: { streams: streamsOf(index), perStream, outputTokens } }, "ended"), {
        concurrency: "unbounded"
      })
    )
    const peek = Effect.map(
      Effect.forEach(used, (thread) => thread.ask({ kind: "peek" }, "peeked"), { concurrency: "unbounded" }),
      (answers) => {
        const peeked = answers.flatMap((answer) => (answer.kind === "peeked" ? [answer] : []))
        return { firsts: peeked.flatMap(({ firsts }) => firsts), arrivals: peeked.flatMap(({ arrivals }) => [...arrivals]), at: now() }
      }
    )
    while (reports.pollUnsafe() === undefined) {
      if (yield* isOver({ elapsed: now() - startedAt, ended: Atomics.load(shared, sharedAt.ended), peek })) break
      yield* Effect.sleep(glance)
    }
    Atomics.store(shared, sharedAt.stop, 1)
    let cutAt = Number.POSITIVE_INFINITY
    const cut = Effect.sync(() => {
      cutAt = now()
      for (const thread of used) thread.tell({ kind: "cut" })
    })
    const late = yield* Effect.forkChild(Effect.delay(cut, drainMillis))
    const answers = yield* Fiber.join(reports)
    const endedAt = now()
    yield* Fiber.interrupt(late)
    const told = answers.flatMap((answer): ReadonlyArray<ThreadReport> => (answer.kind === "ended" ? [answer.report] : []))
    return {
      records: told.flatMap(({ records }) => records),
      closedAt: Math.min(cutAt, ...told.flatMap(({ idleAt }) => idleAt)),
      endedAt,
      delayP99: Math.max(...told.map(({ delayP99 }) => delayP99))
    }
  })
  return { run }
})
