interface Open {
  readonly path: string
  /** Names of the members so far. Null in a list. */
  readonly names: Set<string> | null
  /** Path of the next value. */
  next: string
  count: number
}

/** Index of the closing quotation mark of the string at `start`. */
const endOfString = (json: string, start: number): number => {
  let index = start + 1
  while (json.charCodeAt(index) !== 34) index += json.charCodeAt(index) === 92 ? 2 : 1
  return index
}

const colonFollows = (json: string, index: number): boolean => {
  const rest = /[^ \t\n\r]/gu
  rest.lastIndex = index
  return rest.exec(json)?.[0] === ":"
}

const open = (inside: Open | undefined, names: Set<string> | null): Open => {
  const path = inside?.next ?? ""
  return { path, names, next: names === null ? `${path}[0]` : path, count: 0 }
}

/**
 * Path, such as `source.repo`, of the first member that its object repeats, or null. JSON parsers disagree on which of the values counts.
 * `json` must be valid.
 */
export const repeatedMember = (json: string): string | null => {
  const outer: Array<Open> = []
  for (let index = 0; index < json.length; index++) {
    const code = json.charCodeAt(index)
    const inside = outer.at(-1)
    if (code === 123) outer.push(open(inside, new Set()))
    else if (code === 91) outer.push(open(inside, null))
    else if (code === 125 || code === 93) outer.pop()
    else if (code === 44 && inside?.names === null) inside.next = `${inside.path}[${++inside.count}]`
    else if (code === 34) {
      const end = endOfString(json, index)
      if (inside?.names && colonFollows(json, end + 1)) {
        const name = String(JSON.parse(json.slice(index, end + 1)))
        inside.next = inside.path === "" ? name : `${inside.path}.${name}`
        if (inside.names.has(name)) return inside.next
        inside.names.add(name)
      }
      index = end
    }
  }
  return null
}
