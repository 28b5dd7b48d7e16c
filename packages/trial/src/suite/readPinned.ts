import { fork } from "node:child_process"
import { dirname } from "node:path"
import { fileURLToPath } from "node:url"
import { Data, Effect, type Scope } from "effect"
import type { Conversing } from "./OwnTemplate.ts"
import type { TokenizerFacts } from "./OwnTokenizer.ts"
import type { Numbered, PinnedAnswer, PinnedQuestion, PinnedSource } from "./pinnedQuestions.ts"

/** Heap limit of the process in MB. A `tokenizer.json` of 40 MB takes 200, and 300 while it is read. */
const heapMegabytes = 384

/** The tokenizer of a pinned commit, in a separate process. One question holds many texts. */
export interface PinnedTokenizer extends TokenizerFacts {
  /** The ids of each text. `withSpecial`: with the tokens that surround every text. */
  readonly encode: (texts: ReadonlyArray<string>, withSpecial: boolean) => Effect.Effect<ReadonlyArray<ReadonlyArray<number>>>
  readonly decode: (ids: ReadonlyArray<ReadonlyArray<number>>) => Effect.Effect<ReadonlyArray<string>>
  /** The id of each token; null if the tokenizer has no such token. */
  readonly find: (tokens: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<number | null>>
}

/** The chat template of a pinned commit, in a separate process. */
export interface PinnedTemplate {
  /** Whether the template writes the day of a conversation. */
  readonly writesDay: boolean
  /**
   * The prompt of each conversation up to the start of the answer; null if the template refuses it or needs a feature
   * that is not available here.
   */
  readonly render: (conversations: ReadonlyArray<Conversing>) => Effect.Effect<ReadonlyArray<string | null>>
}

/** Null: the commit has none that can be read. */
export interface Pinned {
  readonly tokenizer: PinnedTokenizer | null
  readonly template: PinnedTemplate | null
}

/**
 * A defect: the process that reads the tokenizer and the template of the repository ended. `message` gives the reason
 * and may be shown to the caller.
 */
export class ProcessEnded extends Data.TaggedError("ProcessEnded")<{
  readonly message: string
  /** Whether the process ended for a reason other than the files that it read. */
  readonly fromOutside: boolean
  /**
   * The part of the repository that exceeded the limits of the process. Null: the process had read nothing yet, or it
   * was ended from outside.
   */
  readonly part: RepositoryPart | null
}> {}

type RepositoryPart = "tokenizer" | "chat template"

/**
 * The signals with which V8 ends the process if its heap is full, because of the repository. Other signals come from
 * outside, for example if the node has no memory left.
 */
const ownSignals: ReadonlySet<unknown> = new Set(["SIGABRT", "SIGTRAP", "SIGILL"])

/**
 * Describes an exit with this code or signal. `part`: the part that the process was working on, if it had answered
 * before.
 */
const endedBy = (code: number | null, signal: string | null, part: RepositoryPart | null): ProcessEnded => {
  if (signal !== null && !ownSignals.has(signal))
    return new ProcessEnded({
      message: `The process that reads the repository's tokenizer and chat template was ended from outside (${signal}), for example because memory was short. No fault of the repository was found.`,
      fromOutside: true,
      part: null
    })
  const within = `within the limits of its process, such as ${heapMegabytes} MB of memory (${signal ?? code})`
  return new ProcessEnded({
    message: `The repository's ${part ?? "tokenizer or chat template"} could not be ${part === "chat template" ? "rendered" : part === null ? "read" : "asked"} ${within}.`,
    fromOutside: false,
    part
  })
}

const unreachable = (why: string) =>
  new ProcessEnded({
    message: `The process that reads the repository's tokenizer and chat template could not be asked (${why}).`,
    fromOutside: true,
    part: null
  })

type Answered = Effect.Effect<PinnedAnswer, ProcessEnded>

/** The program that reads the files. */
interface PinnedProgram {
  readonly url: URL
  /** Permissions of Node's permission model, in addition to reading the program and its libraries. */
  readonly permissions?: ReadonlyArray<string>
}

/** The folder of a package, derived from its entry point in `dist`. */
const packageFolder = (name: string): string => {
  const entry = fileURLToPath(import.meta.resolve(name))
  return entry.slice(0, entry.lastIndexOf(`${name}/`) + name.length)
}

/**
 * The process can read its own program and two libraries, and nothing else: neither `/proc` nor the token of a service
 * account. It cannot write files, start processes or threads, or load addons.
 */
const confinement = (program: URL): ReadonlyArray<string> => {
  const own = dirname(fileURLToPath(import.meta.url))
  const readable = [own, dirname(fileURLToPath(program)), ...["@huggingface/tokenizers", "@huggingface/jinja"].map(packageFolder)]
  return ["--permission", "--disallow-code-generation-from-strings", ...readable.map((path) => `--allow-fs-read=${path}/*`)]
}

/**
 * Starts a process for the lifetime of the scope. If a fiber that asked a question is interrupted, the process still
 * finishes that question.
 */
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
  /** Questions without an answer in their order, including those whose asking fiber was interrupted. */
  const unanswered = new Map<number, PinnedQuestion["_tag"]>()
  let nextNumber = 0
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
  const currentPart = (): RepositoryPart | null => {
    const [first = "Read"] = unanswered.values()
    return first === "Read" ? null : first === "Render" ? "chat template" : "tokenizer"
  }
  child.on("error", ({ message }) => end(unreachable(message))).on("exit", (code, signal) => end(endedBy(code, signal, currentPart())))
  return (words) =>
    Effect.callback((resume) => {
      if (ended !== null) return resume(ended)
      const question: Numbered<PinnedQuestion> = { number: nextNumber++, words }
      waiting.set(question.number, resume)
      unanswered.set(question.number, words._tag)
      child.send(question, (fault) => {
        if (fault !== null) end(unreachable(fault.message))
      })
      return Effect.sync(() => waiting.delete(question.number))
    })
})

const open = Effect.fnUntraced(function* (program: PinnedProgram, source: PinnedSource) {
  const ask = yield* startProcess(program)
  return { ask, known: yield* ask({ _tag: "Read", source }) }
})

/** If the process was ended from outside, that says nothing about the files. It is started again once. */
const openAgain = (program: PinnedProgram, source: PinnedSource) =>
  Effect.catchTag(open(program, source), "ProcessEnded", (ended) => (ended.fromOutside ? open(program, source) : Effect.fail(ended)))

/**
 * Reads the tokenizer and the template of a commit in a separate process for the lifetime of the scope. The files are
 * untrusted: reading them may take forever or use all memory, which would end the whole program if it ran in a thread.
 * A tokenizer that exceeds the memory of the process counts as unreadable. If the process ends later, that is a defect.
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
      const result = read(answer)
      return result === null ? Effect.die(new Error(answer._tag === "Fault" ? answer.message : `${answer._tag} to ${question._tag}`)) : Effect.succeed(result)
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
