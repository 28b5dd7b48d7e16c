import { weightCommits } from "@seatrial/domain"
import { manifestSha256 } from "@seatrial/hub"
import type { RunRevision } from "@seatrial/store"

/** Where a commit's files lie, under the place where the claim is mounted. */
const folderOf = (mount: string, { commit, repo }: { readonly repo: string; readonly commit: string }): string => `${mount}/${repo}/${commit}`

/** Where the files of the model lie, of an adapter those of its base. */
export const weightsPath = (mount: string, { facts }: RunRevision): string => folderOf(mount, weightCommits(facts)[0])

/** Where the files of the adapter lie. */
export const adapterPath = (mount: string, { facts }: RunRevision): string => folderOf(mount, facts)

/** Bytes of all files that an engine is started with. */
export const weightsSize = ({ facts }: Pick<RunRevision, "facts">): number =>
  weightCommits(facts).reduce((sum, { files }) => files.reduce((all, { size }) => all + size, sum), 0)

/** The hash of the list of all files that an engine is started with: that of a commit's own, or of both commits' under their folders. */
export const weightsManifest = ({ facts }: Pick<RunRevision, "facts">): string => {
  const commits = weightCommits(facts)
  if (commits.length === 1) return manifestSha256(facts.files)
  return manifestSha256(commits.flatMap((each) => each.files.map((file) => ({ ...file, path: folderOf("", each).slice(1).concat("/", file.path) }))))
}

/** What the commands that bring files are told of them; `mount` is where they are to appear, null where the command finds that by itself. */
export const weightsWords = ({ facts }: RunRevision, mount: string | null): ReadonlyArray<string> =>
  weightCommits(facts).flatMap((each, at) => {
    const of = at === 0 ? "" : "adapter-"
    return [
      `--${of}repo=${each.repo}`,
      `--${of}commit=${each.commit}`,
      ...(mount === null ? [] : [`--${of}directory=${folderOf(mount, each)}`]),
      `--${of}manifest=${manifestSha256(each.files)}`
    ]
  })
