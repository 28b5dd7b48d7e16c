import { Schema } from "effect"

/** `owner/name` of a hub repository. */
export const RepoName = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9._-]{0,95}\/[A-Za-z0-9][A-Za-z0-9._-]{0,95}$/u, { message: "must be owner/name" })
)

/** A branch, tag or commit, as the caller wrote it. */
export const Ref = Schema.String.check(Schema.isPattern(/^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._/-]{0,199}$/u, { message: "must be a branch, tag or commit" }))

/** A full commit: 40 hexadecimal digits. */
export const Commit = Schema.String.check(Schema.isPattern(/^[0-9a-f]{40}$/u)).pipe(Schema.brand("Commit"))
export type Commit = typeof Commit.Type

export const Source = Schema.Struct({ kind: Schema.Literal("model_hub"), repo: RepoName, ref: Schema.optionalKey(Ref) })
export type Source = typeof Source.Type

/**
 * The callable part of a model's name within its organization. It is not `.` or `..`, which are path segments in URLs.
 * The pattern has no look-ahead, because the Kubernetes API server does not support it.
 */
export const ModelSlug = Schema.String.check(
  Schema.isPattern(/^(?:[A-Za-z0-9_-][A-Za-z0-9._-]?|\.[A-Za-z0-9_-]|[A-Za-z0-9._-]{3,64})$/u, {
    message: "must have 1 to 64 letters, digits, dots, underscores or hyphens, and must not be . or .."
  })
)

/** The default name of a model: the repository's name in lower case. */
export const defaultModelName = (repo: string): string =>
  repo
    .slice(repo.indexOf("/") + 1)
    .toLowerCase()
    .slice(0, 64)
