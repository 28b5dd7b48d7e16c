import { Schema } from "effect"

/** An object of a JSON value. Members that are `undefined` count as absent. */
export type Members = Readonly<Record<string, unknown>>

const Path = Schema.NonEmptyArray(Schema.String)
type Path = typeof Path.Type

/** The changes from one JSON object to the next one, by the path of each changed member. Arrays change as a whole. */
export const Delta = Schema.Struct({
  set: Schema.Array(Schema.Tuple([Path, Schema.Unknown])),
  unset: Schema.Array(Path)
})
export type Delta = typeof Delta.Type

const isMembers = (value: unknown): value is Members => typeof value === "object" && value !== null && !Array.isArray(value)

const isSameList = (before: ReadonlyArray<unknown>, after: ReadonlyArray<unknown>): boolean =>
  before.length === after.length && before.every((value, index) => isSame(value, after[index]))

/**
 * Whether an object lacks a member that the earlier one has. `common`: how many members both have, which answers without
 * another look at each, if the earlier one has no others.
 */
const lacksMember = (before: Members, after: Members, common: number): boolean => {
  const names = Object.keys(before)
  return names.length !== common && names.some((name) => after[name] === undefined && before[name] !== undefined)
}

const isSameMembers = (before: Members, after: Members): boolean => {
  let common = 0
  for (const name of Object.keys(after)) {
    const earlier = before[name]
    if (!isSame(earlier, after[name])) return false
    if (earlier !== undefined) common++
  }
  return !lacksMember(before, after, common)
}

const isSame = (before: unknown, after: unknown): boolean => {
  if (before === after) return true
  if (Array.isArray(before)) return Array.isArray(after) && isSameList(before, after)
  return isMembers(before) && isMembers(after) && isSameMembers(before, after)
}

interface Changes {
  readonly set: Array<readonly [Path, unknown]>
  readonly unset: Array<Path>
}

const pathTo = ([first, ...rest]: ReadonlyArray<string>, name: string): Path => (first === undefined ? [name] : [first, ...rest, name])

/** `parents`: the path to these objects. It is changed on the way down, because most objects have no changes. */
const collect = (before: Members, after: Members, parents: Array<string>, changes: Changes): void => {
  let common = 0
  for (const name of Object.keys(after)) {
    const earlier = before[name]
    const value = after[name]
    if (earlier !== undefined && value !== undefined) common++
    if (value === undefined || earlier === value) continue
    if (isMembers(earlier) && isMembers(value)) {
      parents.push(name)
      collect(earlier, value, parents, changes)
      parents.pop()
    } else if (!isSame(earlier, value)) changes.set.push([pathTo(parents, name), value])
  }
  if (!lacksMember(before, after, common)) return
  for (const name of Object.keys(before)) if (after[name] === undefined && before[name] !== undefined) changes.unset.push(pathTo(parents, name))
}

export const deltaOf = (before: Members, after: Members): Delta => {
  const changes: Changes = { set: [], unset: [] }
  collect(before, after, [], changes)
  return changes
}

export const isEmptyDelta = ({ set, unset }: Delta): boolean => set.length === 0 && unset.length === 0

const membersOf = (value: unknown): Members => (isMembers(value) ? value : {})

const withMember = (members: Members, [name, ...rest]: Path, value: unknown): Members => {
  const [next, ...further] = rest
  return { ...members, [name]: next === undefined ? value : withMember(membersOf(members[name]), [next, ...further], value) }
}

const withoutMember = (members: Members, [name, ...rest]: Path): Members => {
  const [next, ...further] = rest
  if (next !== undefined) return { ...members, [name]: withoutMember(membersOf(members[name]), [next, ...further]) }
  const { [name]: _, ...others } = members
  return others
}

/** The object after these changes. */
export const applyDelta = (before: Members, { set, unset }: Delta): Members => {
  const changed = set.reduce<Members>((members, [path, value]) => withMember(members, path, value), before)
  return unset.reduce(withoutMember, changed)
}
