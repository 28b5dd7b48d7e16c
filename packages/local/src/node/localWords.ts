/** A path inside a container and the local path that replaces it. */
export interface LocalMount {
  readonly mountPath: string
  readonly local: string
}

const within = (word: string, mount: LocalMount) => {
  const path = mount.mountPath.length > 1 && mount.mountPath.endsWith("/") ? mount.mountPath.slice(0, -1) : mount.mountPath
  return word === path || word.startsWith(`${path}/`) ? mount.local + word.slice(path.length) : undefined
}

/**
 * Translates a word for a local process, because there are no mount namespaces. A mount path at the beginning of the
 * word, after the first `=` (`--model=/models/x`), or after a second name (`--lora-modules=name=/models/x`) is replaced
 * by the local folder. The longest mount path wins. Paths in the middle of a word stay unchanged.
 */
export const localWord = (word: string, mounts: ReadonlyArray<LocalMount>): string => {
  const longestFirst = [...mounts].sort((left, right) => right.mountPath.length - left.mountPath.length)
  const rewrite = (text: string) => {
    for (const mount of longestFirst) {
      const local = within(text, mount)
      if (local !== undefined) return local
    }
    return undefined
  }
  const rewritten = rewrite(word)
  if (rewritten !== undefined) return rewritten
  for (const prefix of [/^[^=]*=/, /^[^=]*=[\w.-]+=/]) {
    const before = prefix.exec(word)?.[0]
    const value = before === undefined ? undefined : rewrite(word.slice(before.length))
    if (before !== undefined && value !== undefined) return before + value
  }
  return word
}

/** Kubernetes' expansion: `$(NAME)` becomes the value of the name, `$$` a dollar sign. Unknown names stay unchanged. */
export const expand = (word: string, variables: ReadonlyMap<string, string>): string =>
  word.replace(/\$\$|\$\(([^()]*)\)/g, (match: string, name: string | undefined) => {
    if (match === "$$") return "$"
    return name === undefined ? match : (variables.get(name) ?? match)
  })
