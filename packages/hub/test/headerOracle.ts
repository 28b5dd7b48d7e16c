// A second implementation of safetensors headers and indexes, written from the format's description alone, for
// comparison. It shares nothing with the first.

const bits: Readonly<Record<string, number>> = {
  F64: 64,
  I64: 64,
  U64: 64,
  C64: 64,
  F32: 32,
  I32: 32,
  U32: 32,
  F16: 16,
  BF16: 16,
  I16: 16,
  U16: 16,
  F8_E4M3: 8,
  F8_E4M3FNUZ: 8,
  F8_E5M2: 8,
  F8_E5M2FNUZ: 8,
  F8_E8M0: 8,
  I8: 8,
  U8: 8,
  BOOL: 8,
  F6_E3M2: 6,
  F6_E2M3: 6,
  F4: 4
}

type Node =
  | { readonly kind: "object"; readonly members: ReadonlyArray<readonly [string, Node]> }
  | { readonly kind: "list"; readonly items: ReadonlyArray<Node> }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "number"; readonly text: string }
  | { readonly kind: "literal" }

class Wrong extends Error {}

/** JSON with every member of every object, including duplicates. */
const read = (text: string): Node => {
  let at = 0
  const space = () => {
    while (" \n\r\t".includes(text[at] ?? "x")) at++
  }
  const match = (form: RegExp): string | null => {
    const pattern = new RegExp(form, "y")
    pattern.lastIndex = at
    const hit = pattern.exec(text)?.[0]
    if (hit !== undefined) at += hit.length
    return hit ?? null
  }
  const string = (): string => {
    const raw = match(/"(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/)
    if (raw === null) throw new Wrong()
    const value: unknown = JSON.parse(raw)
    return String(value)
  }
  const node = (depth: number): Node => {
    space()
    const first = text[at]
    if (depth >= 64 && (first === "{" || first === "[")) throw new Wrong()
    if (first === "{" || first === "[") {
      at++
      const members: Array<readonly [string, Node]> = []
      const close = first === "{" ? "}" : "]"
      space()
      if (text[at] !== close) {
        do {
          space()
          const name = first === "{" ? string() : ""
          space()
          if (first === "{" && text[at++] !== ":") throw new Wrong()
          members.push([name, node(depth + 1)])
          space()
        } while (text[at++] === ",")
        at--
      }
      if (text[at++] !== close) throw new Wrong()
      return first === "{" ? { kind: "object", members } : { kind: "list", items: members.map(([, item]) => item) }
    }
    if (first === '"') return { kind: "text", text: string() }
    if (match(/true|false|null/) !== null) return { kind: "literal" }
    const number = match(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/)
    if (number === null) throw new Wrong()
    return { kind: "number", text: number }
  }
  const root = node(0)
  space()
  if (at !== text.length) throw new Wrong()
  return root
}

const numbers = (node: Node | undefined): ReadonlyArray<bigint> => {
  if (node?.kind !== "list") throw new Wrong()
  return node.items.map((item) => {
    if (item.kind !== "number" || !/^\d{1,15}$/.test(item.text)) throw new Wrong()
    return BigInt(item.text)
  })
}

/** How many tensors an index places in each listed file; null if it is invalid. */
export const indexOracle = (index: Uint8Array, listed: ReadonlySet<string>): ReadonlyMap<string, number> | null => {
  try {
    const root = read(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(index))
    const maps = root.kind === "object" ? root.members.filter(([name]) => name === "weight_map") : []
    const map = maps[0]?.[1]
    if (maps.length !== 1 || map?.kind !== "object" || map.members.length === 0) return null
    const files = new Map<string, number>()
    for (const [name, file] of map.members) {
      if (file.kind !== "text" || !listed.has(file.text) || !/^[!-~]{1,512}$/.test(name) || name === "__proto__") return null
      files.set(file.text, (files.get(file.text) ?? 0) + 1)
    }
    return new Set(map.members.map(([name]) => name)).size === map.members.length ? files : null
  } catch {
    return null
  }
}

/** The names of a header's tensors in a file with this many bytes of data; null if the format forbids it. */
export const oracle = (header: Uint8Array, dataBytes: number): ReadonlyArray<string> | null => {
  try {
    const root = read(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(header))
    if (root.kind !== "object") return null
    const covered: Array<readonly [bigint, bigint]> = []
    const tensorNames = new Set<string>()
    for (const [name, node] of root.members) {
      if (tensorNames.has(name) || node.kind !== "object") return null
      tensorNames.add(name)
      if (name === "__metadata__") {
        if (node.members.some(([, value]) => value.kind !== "text")) return null
        continue
      }
      if (!/^[!-~]{1,512}$/.test(name) || name === "__proto__") return null
      const of = (member: string): Node | undefined => {
        const matches = node.members.filter(([own]) => own === member)
        if (matches.length !== 1) throw new Wrong()
        return matches[0]?.[1]
      }
      const dtype = of("dtype")
      const shape = numbers(of("shape"))
      const [from, to, ...rest] = numbers(of("data_offsets"))
      const size = dtype?.kind === "text" && Object.hasOwn(bits, dtype.text) ? bits[dtype.text] : undefined
      if (size === undefined || from === undefined || to === undefined || rest.length > 0 || to < from || shape.length > 16) return null
      if (shape.reduce((product, side) => product * side, 1n) * BigInt(size) !== (to - from) * 8n) return null
      covered.push([from, to])
    }
    let end = 0n
    for (const [from, to] of covered.sort((a, b) => Number(a[0] - b[0]) || Number(a[1] - b[1]))) {
      if (from !== end) return null
      end = to
    }
    return end === BigInt(dataBytes) ? [...tensorNames].filter((name) => name !== "__metadata__") : null
  } catch {
    return null
  }
}
