import { randomUUID } from "node:crypto"
import { Worker } from "node:worker_threads"
import { Data, Effect, Fiber, type Scope } from "effect"
import { greedy, type Subject, textPath } from "../Subject.ts"
import { now } from "./EngineConnection.ts"
import { isThreadAnswer, type Orders, sharedAt, sharedBytes, type ThreadAnswer, type ThreadMessage } from "./generatorMessages.ts"
import type { RequestRecord, ThreadReport } from "./RequestRecord.ts"

/** The load generator itself failed, which is not a fault of the engine. */
export class GeneratorFailed extends Data.TaggedError("GeneratorFailed")<{ readonly message: string }> {}

/** Number of streams per thread. */
const streamsPerThread = 16
/** Milliseconds between two checks whether a step is over. It ends only between two requests of a stream. */
const glance = 20

/** The progress of a step. Times are milliseconds of the streams' own clock. */
export interface Progress {
  readonly elapsed: number
  readonly ended: number
  /** Reads the chunks so far. */
  readonly peek: Effect.Effect<{ readonly firsts: ReadonlyArray<number>; readonly arrivals: ReadonlyArray<number>; readonly at: number }, GeneratorFailed>
}

export interface Load {
  readonly concurrency: number
  readonly outputTokens: number
  /** Maximum number of requests per stream; absent: no limit. */
  readonly perStream?: number
  /** Called repeatedly: whether the streams should stop sending. */
  readonly isOver: (progress: Progress) => Effect.Effect<boolean, GeneratorFailed>
  /** Milliseconds that current requests may still take. Longer requests are cut. */
  readonly drainMillis: number
}

export interface LoadSeen {
  readonly records: ReadonlyArray<RequestRecord>
  /** When the first stream found no further request. */
  readonly closedAt: number
  /** When the last current request ended. */
  readonly endedAt: number
  readonly delayP99: number
}

export interface LoadGenerator {
  readonly run: (load: Load) => Effect.Effect<LoadSeen, GeneratorFailed>
}

type Thread = {
  readonly ask: (message: ThreadMessage, kind: ThreadAnswer["kind"]) => Effect.Effect<ThreadAnswer, GeneratorFailed>
  readonly send: (message: ThreadMessage) => void
}

const startThread = Effect.fnUntraced(function* (orders: Orders): Effect.fn.Return<Thread, never, Scope.Scope> {
  const worker = yield* Effect.acquireRelease(
    Effect.sync(() => new Worker(new URL("generatorThread.ts", import.meta.url), { workerData: orders })),
    // This closes its sockets, so that the engine aborts the current requests.
    (running) => Effect.promise(() => running.terminate())
  )
  const send = (message: ThreadMessage) => worker.postMessage(message)
  // Errors of a thread that was ended on purpose are ignored.
  worker.on("error", () => {})
  return {
    send,
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
        send(message)
        return Effect.sync(forget)
      })
  }
})

interface RequestShape {
  readonly inputTokens: number
  readonly firstSeed: number
  /** Number of streams of the largest load. */
  readonly most: number
}

/** What every thread sends, and where. */
const ordersOf = (url: string, subject: Pick<Subject, "servedName" | "vocabSize">, inputTokens: number, shared: SharedArrayBuffer): Orders => {
  const { hostname, port } = new URL(url)
  return {
    host: hostname.replace(/^\[(.*)\]$/, "$1"),
    port: Number(port === "" ? 80 : port),
    path: textPath,
    body: JSON.stringify({
      model: subject.servedName,
      ...greedy,
      // The prompts repeat between benchmarks: the engine must compute them each time.
      cache_salt: randomUUID(),
      ignore_eos: true,
      stream: true,
      stream_options: { include_usage: true }
    }).slice(0, -1),
    inputTokens,
    vocabSize: subject.vocabSize,
    startedAt: now(),
    shared
  }
}

/** Reads the chunks so far of these threads. */
const peekAt = (threads: ReadonlyArray<Thread>): Progress["peek"] =>
  Effect.map(
    Effect.forEach(threads, (thread) => thread.ask({ kind: "peek" }, "peeked"), { concurrency: "unbounded" }),
    (answers) => {
      const peeked = answers.flatMap((answer) => (answer.kind === "peeked" ? [answer] : []))
      return { firsts: peeked.flatMap(({ firsts }) => firsts), arrivals: peeked.flatMap(({ arrivals }) => [...arrivals]), at: now() }
    }
  )

/** Runs one load and waits for its end. `cutAt`: when the current requests were cut; infinite if they were not. */
const runLoad = Effect.fnUntraced(function* (
  threads: ReadonlyArray<Thread>,
  shared: Int32Array,
  { concurrency, drainMillis, isOver, outputTokens, perStream = Number.MAX_SAFE_INTEGER }: Load
) {
  Atomics.store(shared, sharedAt.stop, 0)
  Atomics.store(shared, sharedAt.ended, 0)
  // Spread evenly, so that all threads have the same load.
  const used = threads.slice(0, Math.ceil(concurrency / streamsPerThread))
  const streamsOf = (index: number) => Array.from({ length: concurrency }, (_, stream) => stream).filter((stream) => stream % used.length === index)
  const startedAt = now()
  const running = yield* Effect.forkChild(
    Effect.forEach(used, (thread, index) => thread.ask({ kind: "run", step: { streams: streamsOf(index), perStream, outputTokens } }, "ended"), {
      concurrency: "unbounded"
    })
  )
  const peek = peekAt(used)
  while (running.pollUnsafe() === undefined) {
    if (yield* isOver({ elapsed: now() - startedAt, ended: Atomics.load(shared, sharedAt.ended), peek })) break
    yield* Effect.sleep(glance)
  }
  Atomics.store(shared, sharedAt.stop, 1)
  let cutAt = Number.POSITIVE_INFINITY
  const cut = Effect.sync(() => {
    cutAt = now()
    for (const thread of used) thread.send({ kind: "cut" })
  })
  const late = yield* Effect.forkChild(Effect.delay(cut, drainMillis))
  const answers = yield* Fiber.join(running)
  const endedAt = now()
  yield* Fiber.interrupt(late)
  return { reports: answers.flatMap((answer): ReadonlyArray<ThreadReport> => (answer.kind === "ended" ? [answer.report] : [])), cutAt, endedAt }
})

/**
 * Streams of requests to one engine for the lifetime of the scope. Each thread runs 16 streams: a busy event loop would
 * lengthen the measured times.
 */
export const makeLoadGenerator = Effect.fnUntraced(function* (
  url: string,
  subject: Pick<Subject, "servedName" | "vocabSize">,
  { firstSeed, inputTokens, most }: RequestShape
): Effect.fn.Return<LoadGenerator, GeneratorFailed, Scope.Scope> {
  const memory = new SharedArrayBuffer(sharedBytes)
  const shared = new Int32Array(memory)
  Atomics.store(shared, sharedAt.seed, firstSeed)
  const orders = ordersOf(url, subject, inputTokens, memory)
  const threads = yield* Effect.all(
    Array.from({ length: Math.ceil(most / streamsPerThread) }, () => startThread(orders)),
    { concurrency: "unbounded" }
  )
  // The threads are ready once they answer. Their start time does not count.
  yield* peekAt(threads)
  return {
    run: (load) =>
      Effect.map(runLoad(threads, shared, load), ({ cutAt, endedAt, reports }) => ({
        records: reports.flatMap(({ records }) => records),
        closedAt: Math.min(cutAt, ...reports.flatMap(({ idleAt }) => idleAt)),
        endedAt,
        delayP99: Math.max(...reports.map(({ delayP99 }) => delayP99))
      }))
  }
})
