import { existsSync } from "node:fs"
import { readdir, realpath } from "node:fs/promises"
import { join } from "node:path"
import { RepoName } from "@seatrial/domain"
import { Effect, Option, Predicate, Schema } from "effect"
import { parse } from "yaml"
import { HubFolderError } from "./HubFolderError.ts"
import { readRepositoryFolder } from "./readRepositoryFolder.ts"
import { makeRepository, type SampleRepository } from "./SampleRepository.ts"

const isRepoName = Schema.is(RepoName)
const Card = Schema.Struct({ license: Schema.String })

/** The license in the card of a repository, which is the YAML at the beginning of its README. */
const licenseOf = (readme: Uint8Array | undefined): string | null => {
  const front = /^---\r?\n([\s\S]*?)\r?\n---/.exec(Buffer.from(readme ?? []).toString())?.[1]
  if (front === undefined) return null
  const card = Option.flatMap(Option.liftThrowable(() => parse(front))(), (fields: unknown) => Schema.decodeUnknownOption(Card)(fields))
  return Option.match(card, { onNone: () => null, onSome: ({ license }) => license })
}

const layout = (root: string) => `Seatrial expects each model in ${join(root, "owner", "name")}, with its config.json`

/** The folders in a folder. Files and names that begin with a dot are left out. A link to a folder is refused. */
const foldersIn = async (path: string): Promise<ReadonlyArray<string>> => {
  const entries = await readdir(path, { withFileTypes: true })
  const link = entries.find((entry) => entry.isSymbolicLink())
  if (link !== undefined)
    throw new HubFolderError({ message: `${join(path, link.name)} is a link. Seatrial does not follow links to models: move or copy the model there.` })
  return entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith(".")).map(({ name }) => name)
}

const refuseModel = (root: string, path: string) => {
  if (existsSync(join(path, "config.json"))) throw new HubFolderError({ message: `${path} is a model itself. ${layout(root)}.` })
}

const findModels = async (root: string): Promise<ReadonlyArray<string>> => {
  refuseModel(root, root)
  const names: Array<string> = []
  for (const owner of await foldersIn(root)) {
    refuseModel(root, join(root, owner))
    for (const name of await foldersIn(join(root, owner))) names.push(`${owner}/${name}`)
  }
  if (names.length === 0) throw new HubFolderError({ message: `${root} has no models. ${layout(root)}.` })
  return names.sort()
}

const checkName = (root: string, name: string, takenNames: ReadonlyMap<string, string>) => {
  if (!isRepoName(name)) {
    throw new HubFolderError({
      message: `${join(root, name)} has no valid name. Rename it: owner and name have letters, digits, dots, underscores and hyphens, and begin with a letter or digit.`
    })
  }
  const taken = takenNames.get(name.toLowerCase())
  if (taken !== undefined) throw new HubFolderError({ message: `${join(root, name)} has the name of ${taken}. Rename one of them.` })
}

const readRepositories = async (root: string, samples: ReadonlyArray<SampleRepository>): Promise<ReadonlyArray<SampleRepository>> => {
  const takenNames = new Map(samples.map(({ name }) => [name.toLowerCase(), `the sample ${name}`]))
  const repositories: Array<SampleRepository> = []
  for (const name of await findModels(root)) {
    checkName(root, name, takenNames)
    takenNames.set(name.toLowerCase(), join(root, name))
    const files = await readRepositoryFolder({ root, path: join(root, name) })
    const readme = files["README.md"]
    const license = readme === undefined || "head" in readme ? null : licenseOf(readme)
    repositories.push(makeRepository({ name, license, commits: [{ title: "Files of a folder", files }] }))
  }
  return repositories
}

const problemOf = (folder: string, cause: unknown): HubFolderError => {
  if (cause instanceof HubFolderError) return cause
  const code = Predicate.hasProperty(cause, "code") ? cause.code : undefined
  const path = Predicate.hasProperty(cause, "path") && typeof cause.path === "string" ? cause.path : folder
  if (code === "ENOENT") return new HubFolderError({ message: `${path} does not exist. Set --hub-folder to a folder with models.` })
  if (code === "ENOTDIR") return new HubFolderError({ message: `${path} is not a folder. Set --hub-folder to a folder with models.` })
  return new HubFolderError({ message: `${path} cannot be read${typeof code === "string" ? ` (${code})` : ""}. Allow your account to read it.` })
}

/**
 * The repositories of a hub folder: each folder `owner/name` in it is one, with its files as the only commit. A link
 * may point to a file in the hub folder and to nothing else. `samples`: the repositories whose names are taken.
 */
export const readHubFolder = Effect.fn("readHubFolder")(function* (folder: string, samples: ReadonlyArray<SampleRepository>) {
  return yield* Effect.tryPromise({
    try: async () => readRepositories(await realpath(folder), samples),
    catch: (cause) => problemOf(folder, cause)
  })
})
