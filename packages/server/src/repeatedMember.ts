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

/** Adds the member whose name is written in `text`. Its path, if the object has it already. */
const addName = (inside: Open, names: Set<string>, text: string): string | null => {
  const name = String(JSON.parse(text))
  inside.next = inside.path === "" ? name : `${inside.path}.${name}`
  if (names.has(name)) return inside.next
  names.add(name)
  return null
}

/** Follows an opening, closing or separating character. */
const follow = (outer: Array<Open>, character: string | undefined): void => {
  const inside = outer.at(-1)
  if (character === "{") outer.push(open(inside, new Set()))
  else if (character === "[") outer.push(open(inside, null))
  else if (character === "}" || character === "]") outer.pop()
  else if (character === "," && inside?.names === null) inside.next = `${inside.path}[${++inside.count}]`
}

/**
 * Path, such as `source.repo`, of the first member that its object repeats, or null. JSON parsers disagree on which of
 * the values counts. `json` must be valid.
 */
export const repeatedMember = (json: string): string | null => {
  const outer: Array<Open> = []
  for (let index = 0; index < json.length; index++) {
    if (json[index] !== '"') {
      follow(outer, json[index])
      continue
    }
    const end = endOfString(json, index)
    const inside = outer.at(-1)
    if (inside?.names && colonFollows(json, end + 1)) {
      const repeated = addName(inside, inside.names, json.slice(index, end + 1))
      if (repeated !== null) return repeated
    }
    index = end
  }
  return null
}
