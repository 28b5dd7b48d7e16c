import type { LockedPackage } from "./lockfile.ts"

const versionsOf = (packages: ReadonlyArray<LockedPackage>) => {
  const versions = new Map<string, { readonly isDev: boolean; readonly all: ReadonlyArray<string> }>()
  for (const { isDev, name, version } of packages) {
    const before = versions.get(name)
    const all = [...new Set([...(before?.all ?? []), version])].sort()
    versions.set(name, { isDev: isDev && (before?.isDev ?? true), all })
  }
  return versions
}

/** What changed from one lock file to another, as lines of Markdown for the release notes: first what runs in the product, then what only builds and tests. */
export const compareLockfiles = (before: ReadonlyArray<LockedPackage>, after: ReadonlyArray<LockedPackage>): ReadonlyArray<string> => {
  const [old, current] = [versionsOf(before), versionsOf(after)]
  const changes = [...new Set([...old.keys(), ...current.keys()])].sort().flatMap((name) => {
    const [from, to] = [old.get(name), current.get(name)]
    const [fromText, toText] = [from?.all.join(", "), to?.all.join(", ")]
    if (fromText === toText) return []
    const text =
      fromText === undefined
        ? `- Added \`${name}\` ${toText}`
        : toText === undefined
          ? `- Removed \`${name}\` ${fromText}`
          : `- \`${name}\` ${fromText} to ${toText}`
    return [{ text, isDev: (to ?? from)?.isDev === true }]
  })
  const section = (title: string, isDev: boolean) => {
    const lines = changes.filter((change) => change.isDev === isDev).map(({ text }) => text)
    return [`### ${title}`, "", ...(lines.length === 0 ? ["None."] : lines)]
  }
  return [...section("Dependencies of the product", false), "", ...section("Dependencies for development", true)]
}
