import type { Commit, RefusalCode } from "@seatrial/domain"
import { Data } from "effect"

type None = Record<never, never>

/** Why a repository is not served. The fields are what the texts name. */
export type RefusalReason = Data.TaggedEnum<{
  NoHubConnection: { readonly repo: string }
  RepositoryNotFound: { readonly repo: string; readonly hasToken: boolean }
  RepositoryDisabled: { readonly repo: string }
  RepositoryClosedByLaw: { readonly repo: string }
  TokenNotAccepted: None
  TokenNotAllowed: { readonly repo: string }
  /** `ref`: as requested. `commit`: if the ref was resolved before. */
  RevisionNotFound: { readonly repo: string; readonly ref: string; readonly commit: Commit | null }
  FileMissing: { readonly repo: string; readonly commit: Commit }
  /** `problem`: a sentence about the files. */
  UnsupportedFormat: { readonly problem: string; readonly kind: "model" | "adapter" }
  /** `problem`: a sentence about the architecture. */
  UnsupportedArchitecture: { readonly problem: string }
  AdapterOfAdapter: { readonly repo: string }
  /** The configuration `file` requires Python code of the repository. */
  RemoteCode: { readonly file: string }
  /** `file` is Python code for a processor, and the processor's configuration `unread` was not read. */
  UnreadProcessor: { readonly file: string; readonly unread: string }
  /** `licenses`: the names in the repository's card; empty if it states none. */
  LicenseDenied: { readonly licenses: ReadonlyArray<string> }
  LicenseNotAccepted: { readonly licenses: ReadonlyArray<string>; readonly repo: string }
  LicenseNotAllowed: { readonly licenses: ReadonlyArray<string>; readonly allowed: ReadonlyArray<string> }
  /** The base of an adapter is refused. `adapter`: the adapter and its base in words. */
  BaseRefused: { readonly adapter: string; readonly base: RefusalReason }
}>
export const RefusalReason = Data.taggedEnum<RefusalReason>()

/** The reader of a refusal: an API caller, or someone who applied an object to the cluster. */
export type RefusalAudience = Data.TaggedEnum<{
  /** The hub token of the caller's own hub connection is used. */
  ApiCaller: None
  /** The hub token that the organization shares with its applied objects is used. `organization`: its slug. */
  AppliedObject: { readonly organization: string }
}>
export const RefusalAudience = Data.taggedEnum<RefusalAudience>()

/** `message` says why the repository is not served, and `remedy` what to do. */
export interface RefusalText {
  readonly message: string
  readonly remedy: string
}

/** How a text names the hub token of its reader, and the commands that change the token. */
interface TokenTerms {
  readonly noConnection: string
  readonly token: string
  readonly reader: string
  readonly connect: string
  readonly connectBriefly: string
  readonly replace: string
  readonly connectAccount: string
}

const callerTerms: TokenTerms = {
  noConnection: "no hub token is stored for the user who owns this API key",
  token: "hub token of the user who owns this API key",
  reader: "the user who owns this API key",
  connect: "store for that user a hub token that can read the repository (`seatrial admin hub-connections set`)",
  connectBriefly: "store for that user a hub token that can read it",
  replace: "Store a new hub token for that user (`seatrial admin hub-connections set`)",
  connectAccount: "store the token of an account that has access"
}

const organizationTerms = (organization: string): TokenTerms => {
  const set = `seatrial admin hub-connections set --org ${organization} --email ...`
  const connect = `store for one user a hub token that can read the repository, and share that token (\`${set}\`, then \`seatrial admin hub-connections share --org ${organization} --email ...\`)`
  return {
    noConnection: `the organization ${organization} shares no hub token with its ModelDeployments`,
    token: `hub token that the organization ${organization} shares`,
    reader: `the organization ${organization}. Its ModelDeployments use the hub token that the organization shares, or no token if it shares none`,
    connect,
    connectBriefly: connect,
    replace: `Store a new hub token for the user whose token is shared (\`${set}\`)`,
    connectAccount: `store and share the token of an account that has access (\`seatrial admin hub-connections set\` and \`share --org ${organization} --email ...\`)`
  }
}

const termsFor = RefusalAudience.$match({ ApiCaller: () => callerTerms, AppliedObject: ({ organization }) => organizationTerms(organization) })

/** A text that looks like an abbreviated commit but is too short to search for. */
const shortCommit = /^[0-9a-f]{4,6}$/i
const startOfCommit = /^[0-9a-f]{7,39}$/i

const revisionRemedy = (ref: string): string => {
  if (shortCommit.test(ref)) return "Choose a branch or tag that the repository has, or a commit by at least its first seven digits."
  return startOfCommit.test(ref)
    ? "Use the full commit. Short commits are found only among the newest 300 commits of main and the commits that branches and tags point to."
    : "Choose a branch, tag or commit that the repository has, or leave ref out for its default branch."
}

/** What to do about a repository that cannot be served in its current layout. */
const layoutRemedies = {
  model: "Choose a repository or a revision with safetensors weights, a configuration and a tokenizer in the layout of Hugging Face Transformers.",
  adapter:
    "Choose a LoRA adapter in the format of PEFT (adapter_config.json and adapter_model.safetensors) whose base is on the hub, or a repository with the adapter merged into its base."
} as const

/** Maximum number of licenses in a message: a card may list thousands. */
const maxNamedLicenses = 5
/** Maximum number of allowed licenses in a remedy. */
const maxNamedAllowed = 40

const noLicense = "The repository states no license, and this installation refuses such repositories."

const describeLicenses = (names: ReadonlyArray<string>): string => {
  const further = names.length > maxNamedLicenses ? ` and ${names.length - maxNamedLicenses} more` : ""
  return `${names.slice(0, maxNamedLicenses).join(", ")}${further}`
}

/** The subject of a sentence that is true of at least one of the licenses. */
const oneOf = (names: ReadonlyArray<string>): string => `${names.length === 1 ? "The license" : "One of the licenses"} ${describeLicenses(names)}`

const otherRepository = "Choose another repository that has this model."

type Texts = { readonly [Tag in RefusalReason["_tag"]]?: (reason: Extract<RefusalReason, { readonly _tag: Tag }>) => RefusalText }

/** The hub does not show the repository to the owner of the token. */
const tokenTexts = ({ connect, connectAccount, connectBriefly, noConnection, reader, replace, token }: TokenTerms) =>
  ({
    NoHubConnection: ({ repo }) => ({
      message: `The repository ${repo} is gated, and ${noConnection}.`,
      remedy: `Accept the repository's terms on the hub, then ${connect}.`
    }),
    RepositoryNotFound: ({ hasToken, repo }) => ({
      message: `The hub has no repository ${repo.slice(0, 200)}, or does not show it to ${reader}.`,
      remedy: `Check the owner and the name. ${hasToken ? "If the repository is private, the hub token must have access to it" : `If the repository is private, ${connectBriefly}`}.`
    }),
    TokenNotAccepted: () => ({ message: `The hub does not accept the ${token}: it was revoked, or has expired.`, remedy: `${replace}.` }),
    TokenNotAllowed: ({ repo }) => ({
      message: `The ${token} may not read ${repo}.`,
      remedy: `Ask the repository's owner for access, or ${connectAccount}.`
    })
  }) satisfies Texts

/** The repository, its revision or its files cannot be served. */
const repositoryTexts = {
  RepositoryDisabled: ({ repo }) => ({ message: `The hub has disabled the repository ${repo}, so it cannot be read.`, remedy: otherRepository }),
  RepositoryClosedByLaw: ({ repo }) => ({
    message: `The hub is not allowed to show the repository ${repo} for legal reasons (status 451), so Seatrial cannot read it there.`,
    remedy: otherRepository
  }),
  RevisionNotFound: ({ commit, ref, repo }) => ({
    message: `The repository ${repo} has no branch, tag or commit ${commit ?? ref}.`,
    remedy: revisionRemedy(ref)
  }),
  FileMissing: ({ commit, repo }) => ({
    message: `The model hub cannot deliver a file that it lists for ${repo} at commit ${commit}.`,
    remedy: layoutRemedies.model
  }),
  UnsupportedFormat: ({ kind, problem }) => ({ message: problem, remedy: layoutRemedies[kind] }),
  UnsupportedArchitecture: ({ problem }) => ({
    message: problem,
    remedy: "Choose a repository of a decoder model for text in the layout of Transformers."
  }),
  AdapterOfAdapter: ({ repo }) => ({
    message: `${repo} is an adapter itself: adapters of adapters are not served.`,
    remedy: "Choose a repository with the adapters merged into their base."
  }),
  RemoteCode: ({ file }) => ({
    message: `${file} asks for Python from the repository (auto_map), which is never run.`,
    remedy: "Choose a repository whose architecture and tokenizer the engines support without its code, such as the same model converted to Transformers."
  }),
  UnreadProcessor: ({ file, unread }) => ({
    message: `Seatrial could not read ${unread}, so it assumes that the model needs the processor code in ${file.slice(0, 200)}. Python from a repository is never run.`,
    remedy: "Choose a repository whose processor the engines support without its code, such as the same model converted to Transformers."
  })
} satisfies Texts

const licenseTexts = {
  LicenseDenied: ({ licenses }) => ({
    message: licenses.length === 0 ? noLicense : `${oneOf(licenses)} is on this installation's list of refused licenses.`,
    remedy: "Choose a model under another license, or ask the installation's administrators."
  }),
  LicenseNotAccepted: ({ licenses, repo }) => ({
    message:
      licenses.length === 0
        ? `The repository states no license. An administrator of this installation must accept ${repo} first.`
        : `${oneOf(licenses)} is served only after an administrator of this installation has accepted it for ${repo}.`,
    remedy: `Ask an administrator to ${licenses.length === 0 ? "" : "read the license and to "}add ${repo.toLowerCase()} to HUB_ACCEPTED_LICENSES.`
  }),
  LicenseNotAllowed: ({ allowed, licenses }) => ({
    message:
      licenses.length === 0
        ? noLicense
        : licenses.length === 1
          ? `The license ${describeLicenses(licenses)} is not on this installation's list of allowed licenses.`
          : `None of the licenses ${describeLicenses(licenses)} is on this installation's list of allowed licenses.`,
    remedy: `Choose a model under one of these licenses: ${allowed.slice(0, maxNamedAllowed).join(", ")}. Or ask the installation's administrators.`
  })
} satisfies Texts

const textOf = (reason: RefusalReason, terms: TokenTerms): RefusalText =>
  RefusalReason.$match(reason, {
    ...tokenTexts(terms),
    ...repositoryTexts,
    ...licenseTexts,
    BaseRefused: ({ adapter, base }) => {
      const { message, remedy } = textOf(base, terms)
      return { message: `${adapter}. Its base is refused: ${message}`, remedy }
    }
  })

/** The text of a refusal for its reader. */
export const describeRefusal = (reason: RefusalReason, audience: RefusalAudience): RefusalText => textOf(reason, termsFor(audience))

const codes: Readonly<Record<Exclude<RefusalReason["_tag"], "BaseRefused">, RefusalCode>> = {
  NoHubConnection: "no_hub_connection",
  RepositoryNotFound: "repository_not_found",
  RepositoryDisabled: "access_required",
  RepositoryClosedByLaw: "access_required",
  TokenNotAccepted: "access_required",
  TokenNotAllowed: "access_required",
  RevisionNotFound: "revision_not_found",
  FileMissing: "unsupported_format",
  UnsupportedFormat: "unsupported_format",
  UnsupportedArchitecture: "unsupported_architecture",
  AdapterOfAdapter: "unsupported_format",
  RemoteCode: "remote_code_required",
  UnreadProcessor: "remote_code_required",
  LicenseDenied: "license_refused",
  LicenseNotAccepted: "license_refused",
  LicenseNotAllowed: "license_refused"
}

/** The contract's code of a refusal. */
export const refusalCode = (reason: RefusalReason): RefusalCode => (reason._tag === "BaseRefused" ? refusalCode(reason.base) : codes[reason._tag])
