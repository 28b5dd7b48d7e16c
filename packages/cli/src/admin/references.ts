import { readFile } from "node:fs/promises"
import { Commit, ModelReference, RepoName } from "@seatrial/domain"
import { type DifferentReference, ModelReferences, type NewReference } from "@seatrial/store"
import { referenceOfFolder, referenceVersion } from "@seatrial/trial"
import { Console, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CommandError } from "../CommandError.ts"
import { printRecord, printRows } from "../print.ts"
import { jsonFlag as json } from "./organization.ts"

const repoFlag = Flag.String("repo").pipe(Flag.withDescription("Repository of the model hub, ORGANIZATION/NAME"), Flag.withSchema(RepoName))
const commitFlag = Flag.String("commit").pipe(Flag.withDescription("Commit, 40 hexadecimal digits"), Flag.withSchema(Commit))

/** The format of exported references. */
const Exported = Schema.Struct({
  format: Schema.Literal(1),
  references: Schema.Array(Schema.Struct({ repo: RepoName, commit: Commit, texts_version: Schema.Int, reference: ModelReference }))
})
const decodeExported = Schema.decodeUnknownEffect(Schema.fromJsonString(Exported))

const differs = ({ commit, repo }: DifferentReference): string =>
  `${repo}@${commit} has another reference, which cannot be changed. One of the two was computed from other files or by a faulty program.`

/** Adds a reference. Fails if the commit has another one. */
const addReference = Effect.fnUntraced(function* (reference: NewReference) {
  const references = yield* ModelReferences
  return yield* Effect.catchTag(references.add(reference), "DifferentReference", (different) => new CommandError({ message: differs(different) }))
})

const listCommand = Command.make(
  "list",
  { json },
  Effect.fn(function* ({ json }) {
    const references = yield* ModelReferences
    yield* printRows(
      json,
      (yield* references.list).map((row) => ({
        repo: row.repo,
        commit: row.commit,
        texts_version: row.textsVersion,
        source: row.source,
        added_by: row.addedBy,
        created_at: row.createdAt,
        transformers: row.transformers,
        torch: row.torch
      }))
    )
  })
).pipe(Command.withDescription("Lists the commits that have a reference."))

const missingCommand = Command.make(
  "missing",
  { json },
  Effect.fn(function* ({ json }) {
    const references = yield* ModelReferences
    yield* printRows(
      json,
      (yield* references.listMissing).map((row) => ({
        repo: row.repo,
        commit: row.commit,
        texts_version: row.textsVersion,
        code: row.code,
        found_at: row.foundAt
      }))
    )
  })
).pipe(Command.withDescription("Lists the commits for which the operator found no reference, with the code of the cause."))

const nothingToForget = (commit: string, hasReference: boolean): string =>
  hasReference
    ? `${commit} has a reference. A reference never changes, so its trials go on with it, and nothing was forgotten.`
    : `No cause is stored for ${commit}. Its next trial computes the reference if the host class asks for references.`

const forgetCommand = Command.make(
  "forget",
  { repo: repoFlag, commit: commitFlag, json },
  Effect.fn(function* ({ commit, json, repo }) {
    const references = yield* ModelReferences
    const hasReference = Option.isSome(yield* references.find({ repo, commit, textsVersion: referenceVersion }))
    const forgotten = hasReference ? [] : yield* references.forgetMissing({ repo, commit })
    if (forgotten.length === 0) return yield* new CommandError({ message: nothingToForget(`${repo}@${commit}`, hasReference) })
    yield* printRecord(json, { repo, commit, forgotten: forgotten.join(", ") })
  })
).pipe(
  Command.withDescription(
    "Forgets why a commit has no reference, so that its next trial computes it again. Use it after the cause is removed. It does not change references."
  )
)

const exportCommand = Command.make(
  "export",
  { repo: repoFlag.pipe(Flag.optional) },
  Effect.fn(function* ({ repo }) {
    const store = yield* ModelReferences
    const listed = (yield* store.list).filter((row) => Option.isNone(repo) || row.repo === repo.value)
    const references = yield* Effect.forEach(listed, (row) =>
      Effect.map(store.find(row), (found) =>
        Option.toArray(found).map((reference) => ({ repo: row.repo, commit: row.commit, texts_version: row.textsVersion, reference }))
      )
    )
    yield* Console.log(JSON.stringify({ format: 1, references: references.flat() } satisfies typeof Exported.Type))
  })
).pipe(Command.withDescription("Prints references as JSON, for `import` into another installation."))

const importCommand = Command.make(
  "import",
  { file: Argument.String("file").pipe(Argument.withDescription("File that `export` printed")), json },
  Effect.fn(function* ({ file, json }) {
    const text = yield* Effect.tryPromise({
      try: () => readFile(file, "utf8"),
      catch: () => new CommandError({ message: `${file} cannot be read.`, exitCode: 2 })
    })
    const { references } = yield* Effect.mapError(
      decodeExported(text),
      () => new CommandError({ message: `${file} has no references in the format of \`seatrial admin references export\`.`, exitCode: 2 })
    )
    const added = yield* Effect.forEach(references, ({ commit, reference, repo, texts_version }) =>
      addReference({ repo, commit, textsVersion: texts_version, source: "imported", reference })
    )
    yield* printRecord(json, { added: added.filter(Boolean).length, known: added.filter((isAdded) => !isAdded).length })
  })
).pipe(Command.withDescription("Adds references that another installation exported. A commit that has another reference is refused."))

const computeCommand = Command.make(
  "compute",
  {
    repo: repoFlag,
    commit: commitFlag,
    folder: Flag.String("folder").pipe(Flag.withDescription("Folder with the files of that commit. They are not compared with the hub.")),
    python: Flag.String("python").pipe(
      Flag.withDescription("Python interpreter with torch, transformers and safetensors, for example of the engine's image"),
      Flag.withDefault("python3")
    ),
    memoryGib: Flag.Int("memory-gib").pipe(
      Flag.withDescription("Memory for weights. Larger models are read from their files three times, and no greedy answers are computed."),
      Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 4_096 }))),
      Flag.withDefault(8)
    ),
    json
  },
  Effect.fn(function* ({ commit, folder, json, memoryGib, python, repo }) {
    const reference = yield* Effect.mapError(
      referenceOfFolder({ folder, python, memoryBytes: memoryGib * 2 ** 30 }, commit),
      ({ message }) => new CommandError({ message })
    )
    const isAdded = yield* addReference({ repo, commit, textsVersion: referenceVersion, source: "computed", reference })
    const tokens = reference.sequences.reduce((sum, { logprobs }) => sum + logprobs.length, 0)
    yield* printRecord(json, { repo, commit, tokens, greedy_answers: reference.continuations.length, added: isAdded })
  })
).pipe(
  Command.withDescription(
    "Computes the reference of a commit with Hugging Face Transformers on the processors of this machine. The model must be unquantized. No code of the repository runs."
  )
)

export const referencesCommand = Command.make("references").pipe(
  Command.withDescription("What an independent implementation computes for a commit. The trial compares engines with it. A reference never changes."),
  Command.withSubcommands([listCommand, missingCommand, forgetCommand, exportCommand, importCommand, computeCommand])
)
