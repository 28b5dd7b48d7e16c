import { Unreadable } from "./failures.ts"
import { JsonNumber, JsonScanner } from "./JsonScanner.ts"
import { isTensorName, type Sink } from "./safetensors.ts"
import { groupOf } from "./TensorGroups.ts"
import { maxTensors, NameHashes, TensorNames } from "./TensorNames.ts"

/** Longest index that is read, in bytes: that of the largest models of today, of 280,000 tensors, is shorter. */
export const maxIndexBytes = 32 * 1024 * 1024
/** Most weight files; the largest models of today have a few hundred. */
export const maxShards = 1_000

/** Far beyond every real model; bounds what an index can make us keep. */
const maxKinds = 20_000

/** What an index places in one file. */
export interface Placed {
  /** From 1, as `names` counts files. */
  readonly number: number
  tensors: number
  /** Length of their names together. */
  nameBytes: number
  /** How many there are of each group, and the name of one. */
  readonly groups: Map<string, { readonly name: string; count: number }>
}

/** Which tensors are in which file. */
export interface WeightIndex {
  readonly files: ReadonlyMap<string, Placed>
  readonly names: TensorNames
  /** What the index says that all tensors come to, in bytes, where it says so. */
  readonly totalBytes: number | null
}

/**
 * Reads an index (`model.safetensors.index.json`) as it arrives. Fails where it names a tensor twice, or a file that is not among `listed`. What it keeps does
 * not grow with the number of a layer's experts.
 */
export const scanIndex = (of: string, listed: ReadonlySet<string>): Sink<WeightIndex> => {
  const fail = (what: string): never => {
    throw new Unreadable({ reason: `${of} ${what}.` })
  }
  const files = new Map<string, Placed>()
  const names = new TensorNames()
  const hash = new NameHashes(1)
  let tensors = 0
  let kinds = 0
  let inMap = false
  let mapSeen = false
  let inMetadata = false
  let inTotal = false
  let totalBytes: number | null = null
  let tensor = ""

  const place = (file: string) => {
    let placed = files.get(file)
    if (placed === undefined) {
      if (!listed.has(file)) return fail("names files that do not lie beside it")
      if (files.size === maxShards) return fail(`names more than ${maxShards} weight files`)
      placed = { number: files.size + 1, tensors: 0, nameBytes: 0, groups: new Map() }
      files.set(file, placed)
    }
    if (!isTensorName(tensor)) return fail("names a tensor in characters that no engine takes")
    if (++tensors > maxTensors) return fail(`names more than ${maxTensors} tensors`)
    hash.length = 0
    hash.add(tensor)
    if (!names.place(hash, 0, placed.number)) return fail("names something twice")
    placed.tensors++
    placed.nameBytes += tensor.length
    const key = groupOf(tensor)
    const group = placed.groups.get(key)
    if (group !== undefined) group.count++
    else {
      if (++kinds > maxKinds) return fail("names more kinds of tensors than any model has")
      placed.groups.set(key, { name: tensor, count: 1 })
    }
  }

  const scanner = new JsonScanner(of, {
    ignores: (depth) => depth > 2 || (depth === 2 && !inMap && !inMetadata),
    begin: (kind, depth) => {
      if (depth === 0 && kind === "list") fail("is not a JSON object")
      if (depth === 1 && inMap && kind === "list") fail("has no map from tensors to files")
      if (depth >= 2 && inMap) fail("has no map from tensors to files")
    },
    end: (depth) => {
      if (depth === 1) inMap = false
    },
    name: (name, depth) => {
      if (depth === 1) {
        inMap = name === "weight_map"
        inMetadata = name === "metadata"
        if (inMap && mapSeen) fail("names something twice")
        mapSeen ||= inMap
      } else if (depth === 2 && inMap) tensor = name
      inTotal = depth === 2 && inMetadata && name === "total_size"
    },
    value: (value, depth) => {
      if (depth === 0) fail("is not a JSON object")
      if (inTotal && value instanceof JsonNumber && Number.isSafeInteger(value.value)) totalBytes = value.value
      if (!inMap) return
      if (depth === 1 || typeof value !== "string") return fail("has no map from tensors to files")
      place(value)
    }
  })

  return {
    push: (chunk) => scanner.push(chunk),
    end: () => {
      scanner.end()
      if (!mapSeen) fail("has no map from tensors to files")
      if (files.size === 0) fail("names no tensor")
      return { files, names, totalBytes }
    }
  }
}
