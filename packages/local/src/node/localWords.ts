/** A place inside a container and the local path that stands for it. */
export interface LocalMount {
  readonly mountPath: string
  readonly local: string
}

const within = (word: string, mount: LocalMount) => {
  const path = mount.mountPath.length > 1 && mount.mountPath.endsWith("/") ? mount.mountPath.slice(0, -1) : mount.mountPath
  return word === path || word.startsWith(`${path}/`) ? mount.local + word.slice(path.length) : undefined
}

/**
 * The word as a local process must read it. There are no mount namespaces here: a word that begins with a mount path, or whose part behind the first `=`
 * does (`--model=/models/x`), or behind a name and another one (`--lora-modules=name=/models/x`), gets the local folder in its place; the longest mount path wins. Paths in the middle of a word stay as they are.
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
  const whole = rewrite(word)
  if (whole !== undefined) return whole
  for (const named of [/^[^=]*=/, /^[^=]*=[\w.-]+=/]) {
    const before = named.exec(word)?.[0]
    const value = before === undefined ? undefined : rewrite(word.slice(before.length))
    if (before !== undefined && value !== undefined) return before + value
  }
  return word
}

/** Kubernetes' expansion: `$(NAME)` where the name is known, `$$` is a dollar sign, and an unknown name stays as written. */
export const expand = (word: string, variables: ReadonlyMap<string, string>): string =>
  word.replace(/\$\$|\$\(([^()]*)\)/g, (whole: string, name: string | undefined) => {
    if (whole === "$$") return "$"
    return name === undefined ? whole : (variables.get(name) ?? whole)
  })
