import { optionalNullable, RepoName } from "@seatrial/domain"
import { Option, Schema } from "effect"
import type { HubSettings } from "./HubSettings.ts"
import { RefusalReason } from "./refusals.ts"

/** The license in a repository's card: its name, and every name that a list may use for it. */
export interface License {
  /** Null if the card states none. */
  readonly name: string | null
  readonly names: ReadonlyArray<string>
}

const Text = Schema.String
const Card = Schema.Struct({
  license: Schema.Union([Text, Schema.NonEmptyArray(Text)]),
  license_name: optionalNullable(Text)
})
const decodeCard = Schema.decodeUnknownOption(Card)
const decodeTags = Schema.decodeUnknownOption(Schema.Array(Text))

/** The name in lists for a repository without a license. */
const unstated = "none"

const tidy = (name: string) =>
  name
    .replace(/[^ -~]/g, "")
    .trim()
    .toLowerCase()
    .slice(0, 100)

/** The license in a repository's card (`license`, and `license_name` if that is `other`), otherwise in its tags. */
export const licenseOf = (info: { readonly cardData?: unknown; readonly tags?: unknown }): License => {
  const card = decodeCard(info.cardData)
  if (Option.isSome(card)) {
    const { license, license_name } = card.value
    const stated = (typeof license === "string" ? [license] : license).map(tidy).filter((name) => name !== "")
    const own = typeof license_name === "string" && tidy(license_name) !== "" ? [tidy(license_name)] : []
    const names = [...stated, ...own]
    if (names.length > 0) return { name: names[0] === "other" ? (own[0] ?? "other") : (names[0] ?? null), names }
  }
  const tags = Option.getOrElse(decodeTags(info.tags), () => [])
  const names = tags.filter((tag) => tag.startsWith("license:")).map((tag) => tidy(tag.slice("license:".length)))
  return { name: names[0] ?? null, names }
}

const repository = Schema.is(RepoName)

/**
 * Why an installation does not serve a license, or null. A denied name refuses. If there is a list of allowed names,
 * each name must be on it or on the list of names that need acceptance. A name that needs acceptance requires an
 * administrator's acceptance of the repository, or of the license for every repository.
 */
export const licenseRefusal = (
  license: License,
  settings: Pick<HubSettings, "allowedLicenses" | "askedLicenses" | "acceptedLicenses" | "deniedLicenses">,
  repo: string
): RefusalReason | null => {
  const { acceptedLicenses, allowedLicenses, askedLicenses, deniedLicenses } = settings
  const names = license.names.length === 0 ? [unstated] : license.names
  if (names.some((name) => deniedLicenses.includes(name))) return RefusalReason.LicenseDenied({ licenses: license.names })
  const isAccepted = acceptedLicenses.some((entry) => (repository(entry) ? entry === repo.toLowerCase() : names.includes(entry)))
  if (isAccepted) return null
  if (names.some((name) => askedLicenses.includes(name))) return RefusalReason.LicenseNotAccepted({ licenses: license.names, repo })
  // A license with a second name, such as `other` with `license_name`, is allowed by either name.
  return allowedLicenses.length > 0 && !names.some((name) => allowedLicenses.includes(name))
    ? RefusalReason.LicenseNotAllowed({ licenses: license.names, allowed: allowedLicenses })
    : null
}
