/** How often a result came, and its chance for each draw. */
export interface Counted {
  readonly hits: number
  readonly draws: number
  readonly chance: number
}

const logistic = (value: number) => 1 / (1 + Math.exp(-value))

/** Changes the logit of a chance. Impossible and certain results do not change. */
const moved = (chance: number, nats: number) => (chance <= 0 || chance >= 1 ? chance : logistic(Math.log(chance / (1 - chance)) + nats))

/** The chances of 0, 1, 2, ... hits. */
const chancesOf = (draws: number, chance: number): ReadonlyArray<number> => {
  if (chance <= 0 || chance >= 1) return Array.from({ length: draws + 1 }, (_, hits) => (hits === (chance <= 0 ? 0 : draws) ? 1 : 0))
  let logs = draws * Math.log1p(-chance)
  const odds = Math.log(chance) - Math.log1p(-chance)
  return Array.from({ length: draws + 1 }, (_, hits) => {
    if (hits > 0) logs += Math.log((draws - hits + 1) / hits) + odds
    return Math.exp(logs)
  })
}

const sum = (values: ReadonlyArray<number>) => values.reduce((total, value) => total + value, 0)

/**
 * The exact probability of a count at least as far from the expected one, on both sides, if the true chance is within
 * `tolerance` nats of the expected one. A test that rejects below a level rejects a right engine at most that often.
 */
export const improbability = ({ chance, draws, hits }: Counted, tolerance: number): number => {
  const fewer = sum(chancesOf(draws, moved(chance, -tolerance)).slice(0, hits + 1))
  const more = sum(chancesOf(draws, moved(chance, tolerance)).slice(hits))
  return Math.min(1, 2 * Math.min(fewer, more))
}
