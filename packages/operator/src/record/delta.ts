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

const isSameMembers = (before: Members, after: Members): boolean =>
  Object.keys(before).every((name) => before[name] === undefined || after[name] !== undefined) &&
  Object.keys(after).every((name) => isSame(before[name], after[name]))

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

const collect = (before: Members, after: Members, parents: ReadonlyArray<string>, changes: Changes): void => {
  for (const [name, value] of Object.entries(after)) {
    const earlier = before[name]
    if (value === undefined || earlier === value) continue
    if (isMembers(earlier) && isMembers(value)) collect(earlier, value, [...parents, name], changes)
    else if (!isSame(earlier, value)) changes.set.push([pathTo(parents, name), value])
  }
  for (const [name, value] of Object.entries(before)) {
    if (value !== undefined && after[name] === undefined) changes.unset.push(pathTo(parents, name))
  }
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
