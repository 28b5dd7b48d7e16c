import { fork } from "node:child_process"
import { dirname } from "node:path"
import { fileURLToPath } from "node:url"
import { Data, Effect, type Scope } from "effect"
import type { Conversing } from "./OwnTemplate.ts"
import type { TokenizerFacts } from "./OwnTokenizer.ts"
import type { Numbered, PinnedAnswer, PinnedQuestion, PinnedSource } from "./pinnedQuestions.ts"

/** Heap of a process, MB: a `tokenizer.json` of 40 MB takes 200, and 300 while it is read. */
const heapMegabytes = 384

/** A pinned commit's tokenizer, in a process of its own. Many texts are one question. */
export interface PinnedTokenizer extends TokenizerFacts {
  /** Each text's ids; `withSpecial`: with what stands around every text. */
  readonly encode: (texts: ReadonlyArray<string>, withSpecial: boolean) => Effect.Effect<ReadonlyArray<ReadonlyArray<number>>>
  readonly decode: (ids: ReadonlyArray<ReadonlyArray<number>>) => Effect.Effect<ReadonlyArray<string>>
  /** Each token's id; null where it has no such token. */
  readonly find: (tokens: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<number | null>>
}

/** A pinned commit's chat template, in a process of its own. */
export interface PinnedTemplate {
  /** Whether it writes the day of a conversation. */
  readonly writesDay: boolean
  /** Each conversation's prompt up to where the answer begins; null where the template refuses it, or needs what we do not have. */
  readonly render: (conversations: ReadonlyArray<Conversing>) => Effect.Effect<ReadonlyArray<string | null>>
}

/** Null: there is none that we read. */
export interface Pinned {
  readonly tokenizer: PinnedTokenizer | null
  readonly template: PinnedTemplate | null
}

/** A defect: the process that reads the repository's own tokenizer and template is gone. `message` says by what, and may be shown. */
export class ProcessEnded extends Data.TaggedError("ProcessEnded")<{
  readonly message: string
  /** Whether something else than what it read ended it. */
  readonly fromOutside: boolean
  /** What of the repository was asked when that was too much for it. Null: it had read nothing yet, which may be our own fault, or it was ended from outside. */
  readonly asked: Asked | null
}> {}

type Asked = "tokenizer" | "chat template"

/** What V8 ends itself by where its heap is full: the repository's doing. Any other signal comes from outside, as where the node has no memory left. */
const ownSignals: ReadonlySet<unknown> = new Set(["SIGABRT", "SIGTRAP", "SIGILL"])

/** What is said of a process that ended with that code, or by that signal. `asked`: what it was at, where it had answered before. */
const endedBy = (code: number | null, signal: string | null, asked: Asked | null): ProcessEnded => {
  if (signal !== null && !ownSignals.has(signal))
    return new ProcessEnded({
      message: `The process that reads the repository's tokenizer and chat template was ended from outside (${signal}), as where memory is short; nothing was found against the repository.`,
      fromOutside: true,
      asked: null
    })
  const within = `within its limits, ${heapMegabytes} MB of memory among them (${signal ?? code})`
  return new ProcessEnded({
    message: `The repository's ${asked ?? "tokenizer or chat template"} could not be ${asked === "chat template" ? "rendered" : asked === null ? "read" : "asked"} ${within}.`,
    fromOutside: false,
    asked
  })
}

const unasked = (why: string) =>
  new ProcessEnded({
    message: `The process that reads the repository's tokenizer and chat template could not be asked (${why}).`,
    fromOutside: true,
    asked: null
  })

type Answered = Effect.Effect<PinnedAnswer, ProcessEnded>

/** The program that reads them. */
interface PinnedProgram {
  readonly url: URL
  /** What Node's permission model grants it besides reading itself and its libraries. */
  readonly permissions?: ReadonlyArray<string>
}

/** The folder of a package, by its entry point in `dist`. */
const packageFolder = (name: string): string => {
  const entry = fileURLToPath(import.meta.resolve(name))
  return entry.slice(0, entry.lastIndexOf(`${name}/`) + name.length)
}

/** It reads its own program and two libraries, and nothing else: neither `/proc` nor a service account's token. It writes no file, starts no process or thread and loads no addon. */
const confinement = (program: URL): ReadonlyArray<string> => {
  const own = dirname(fileURLToPath(import.meta.url))
  const readable = [own, dirname(fileURLToPath(program)), ...["@huggingface/tokenizers", "@huggingface/jinja"].map(packageFolder)]
  return ["--permission", "--disallow-code-generation-from-strings", ...readable.map((path) => `--allow-fs-read=${path}/*`)]
}

/** A process for as long as the scope, whatever it is busy with then. Who leaves a question waits for nothing; the process goes on with it. */
const startProcess = Effect.fnUntraced(function* ({
  permissions = [],
  url
}: PinnedProgram): Effect.fn.Return<(question: PinnedQuestion) => Answered, never, Scope.Scope> {
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      fork(url, {
        serialization: "advanced",
        execArgv: [`--max-old-space-size=${heapMegabytes}`, "--max-semi-space-size=8", ...confinement(url), ...permissions],
        env: {},
        stdio: ["ignore", "ignore", "ignore", "ipc"]
      })
    ),
    (running) => Effect.sync(() => running.kill("SIGKILL"))
  )
  const waiting = new Map<number, (answer: Answered) => void>()
  /** What it has not answered, first what it is at: also what nobody waits for any more. */
  const unanswered = new Map<number, PinnedQuestion["_tag"]>()
  let asked = 0
  let ended: Answered | null = null
  const end = (why: ProcessEnded) => {
    ended ??= Effect.fail(why)
    for (const resume of waiting.values()) resume(ended)
    waiting.clear()
  }
  child.on("message", ({ number, words }: Numbered<PinnedAnswer>) => {
    waiting.get(number)?.(Effect.succeed(words))
    waiting.delete(number)
    unanswered.delete(number)
  })
  const askedLast = (): Asked | null => {
    const [first = "Read"] = unanswered.values()
    return first === "Read" ? null : first === "Render" ? "chat template" : "tokenizer"
  }
  child.on("error", ({ message }) => end(unasked(message))).on("exit", (code, signal) => end(endedBy(code, signal, askedLast())))
  return (words) =>
    Effect.callback((resume) => {
      if (ended !== null) return resume(ended)
      const question: Numbered<PinnedQuestion> = { number: asked++, words }
      waiting.set(question.number, resume)
      unanswered.set(question.number, words._tag)
      child.send(question, (fault) => {
        if (fault !== null) end(unasked(fault.message))
      })
      return Effect.sync(() => waiting.delete(question.number))
    })
})

const open = Effect.fnUntraced(function* (program: PinnedProgram, source: PinnedSource) {
  const ask = yield* startProcess(program)
  return { ask, known: yield* ask({ _tag: "Read", source }) }
})

/** A process that something else ended says nothing of what it read, and is tried once more. */
const openAgain = (program: PinnedProgram, source: PinnedSource) =>
  Effect.catchTag(open(program, source), "ProcessEnded", (ended) => (ended.fromOutside ? open(program, source) : Effect.fail(ended)))

/**
 * Reads a commit's tokenizer and template in a process of its own, which keeps them for as long as the scope: they are anybody's, and may take seconds, for ever, or all
 * memory, with which a thread would end its whole program. A tokenizer that is more than the process can hold counts as one that we do not read; what ends the process
 * later is a fault.
 */
export const readPinned = Effect.fnUntraced(function* (
  source: PinnedSource,
  program: PinnedProgram = { url: new URL("./pinnedProcess.ts", import.meta.url) }
): Effect.fn.Return<Pinned, never, Scope.Scope> {
  if (source.tokenizer === null && source.template === null) return { tokenizer: null, template: null }
  const { ask, known } = yield* openAgain(program, source).pipe(
    Effect.catchTag("ProcessEnded", () => openAgain(program, { ...source, tokenizer: null })),
    Effect.orDie
  )
  const askFor = <A>(question: PinnedQuestion, read: (answer: PinnedAnswer) => A | null): Effect.Effect<A> =>
    Effect.flatMap(Effect.orDie(ask(question)), (answer) => {
      const found = read(answer)
      return found === null ? Effect.die(new Error(answer._tag === "Fault" ? answer.message : `${answer._tag} to ${question._tag}`)) : Effect.succeed(found)
    })
  if (known._tag !== "Read") return yield* Effect.die(new Error(known._tag === "Fault" ? known.message : known._tag))
  return {
    tokenizer: known.tokenizer && {
      ...known.tokenizer,
      encode: (texts, withSpecial) => askFor({ _tag: "Encode", texts, withSpecial }, (answer) => (answer._tag === "Encoded" ? answer.ids : null)),
      decode: (ids) => askFor({ _tag: "Decode", ids }, (answer) => (answer._tag === "Decoded" ? answer.texts : null)),
      find: (tokens) => askFor({ _tag: "Find", tokens }, (answer) => (answer._tag === "Found" ? answer.ids : null))
    },
    template: known.template
      ? {
          writesDay: source.template?.text.includes("strftime_now") === true,
          render: (conversations) => askFor({ _tag: "Render", conversations }, (answer) => (answer._tag === "Rendered" ? answer.texts : null))
        }
      : null
  }
})
