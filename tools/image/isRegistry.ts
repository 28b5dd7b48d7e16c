/**
 * Whether a container registry answers at this address, for example `https://registry-1.docker.io`. It answers 200, or 401 without a login. Anything else comes from
 * something between, such as a proxy that refuses the host with 403.
 */
export const isRegistry = async (address: string): Promise<boolean> =>
  await fetch(`${address}/v2/`, { signal: AbortSignal.timeout(5_000) }).then(
    ({ status }) => status === 200 || status === 401,
    () => false
  )
