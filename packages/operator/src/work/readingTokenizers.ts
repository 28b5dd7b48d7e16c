import { Semaphore } from "effect"

/** The largest small file of a repository to read, in bytes. A model with a larger tokenizer is tried without it. */
export const largestSmall = 40 * 1024 * 1024

/**
 * One tokenizer is read at a time, and suites do not wait for each other otherwise. Reading a large tokenizer takes
 * hundreds of megabytes, and after a change of the leader all checks start at once. A suite may take an hour, on GPUs
 * that its organization pays for.
 */
export const reading = Semaphore.makeUnsafe(1)

/** The time limit for reading a tokenizer: some seconds on a busy machine, and unbounded for a malicious one. */
export const readingLimit = "2 minutes"
