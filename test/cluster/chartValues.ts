/** Values that the chart has to be right with, each what some installation would set. */
export const chartValues: Readonly<Record<string, unknown>> = {
  "nothing set": {},
  "everything that can be switched on, and every list filled": {
    image: { digest: `sha256:${"0".repeat(64)}`, pullSecrets: [{ name: "registry" }] },
    server: {
      replicas: 5,
      env: { SERVER_HOST: "::", SERVER_MAX_BODY_BYTES: 1_048_576, SERVER_REQUIRE_FIRST_PURCHASE: false },
      service: { type: "LoadBalancer", port: 443, annotations: { "example.com/internal": "true" } },
      extraEnv: [{ name: "HTTPS_PROXY", valueFrom: { secretKeyRef: { name: "proxy", key: "url" } } }],
      serviceAccount: { create: true, name: "api", annotations: { "example.com/role": "database" } },
      nodeSelector: { pool: "api" },
      affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
      tolerations: [{ operator: "Exists" }],
      extraVolumes: [{ name: "certificates", configMap: { name: "certificates" } }],
      extraVolumeMounts: [{ name: "certificates", mountPath: "/etc/ssl/certs", readOnly: true }]
    },
    ingress: {
      enabled: true,
      className: "nginx",
      annotations: { "nginx.ingress.kubernetes.io/proxy-buffering": "off" },
      host: "seatrial.example.com",
      tlsSecret: "seatrial-tls"
    },
    httpRoute: { enabled: true, parentRefs: [{ name: "public", namespace: "gateways" }], hostnames: ["seatrial.example.com"] },
    logLevel: "Warn",
    nameOverride: "models",
    commonLabels: { "example.com/cost-center": "42" },
    affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
    networkPolicy: {
      databasePorts: [6432],
      hubPorts: [443, 8443],
      blockedNetworks: ["10.0.0.0/8", "fd00::/8"],
      metricsFrom: [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "monitoring" } } }],
      extraEgress: [{ to: [{ namespaceSelector: {} }], ports: [{ port: 3128, protocol: "TCP" }] }]
    },
    gateway: {
      replicas: 9,
      graceSeconds: 600,
      cacheSecret: { existingSecret: "salts", key: "salt" },
      heapMegabytes: 4_096,
      env: { GATEWAY_MAX_BODY_BYTES: 33_554_432 },
      service: { type: "NodePort" },
      autoscaling: { enabled: true, minReplicas: 3, maxReplicas: 30, cpuPercent: 60 },
      spool: {
        volume: { ephemeral: { volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } } } }
      }
    },
    operator: { replicas: 3, leaseSeconds: 30, countAllPods: true, fetchImage: "registry.example/fetch:1", env: { OPERATOR_CONCURRENCY: 32 } },
    weights: { storageClass: "fast", accessModes: ["ReadWriteOnce"], size: "20Ti" },
    monitoring: {
      serviceMonitor: { enabled: true, interval: "1m", labels: { release: "prometheus" } },
      prometheusRule: { enabled: true, labels: { release: "prometheus" } },
      dashboard: { enabled: true }
    },
    organizations: { own: "acme", namespaces: { "team-a": "acme", "team-b": "globex" } },
    kueue: { enabled: true },
    podAnnotations: { "example.com/owner": "platform" },
    podLabels: { team: "platform" },
    priorityClassName: "system-cluster-critical",
    nodeSelector: { "kubernetes.io/os": "linux" },
    tolerations: [{ key: "dedicated", operator: "Equal", value: "control", effect: "NoSchedule" }]
  },
  "everything that can be switched off": {
    server: { replicas: 1, serviceAccount: { create: false } },
    gateway: { replicas: 1, spool: { enabled: false }, serviceAccount: { create: false, name: "gateway" } },
    operator: { replicas: 1, serviceAccount: { create: false, name: "operator" } },
    fullnameOverride: "st",
    migrations: { enabled: false },
    weights: { create: false },
    networkPolicy: { enabled: false },
    podDisruptionBudget: { enabled: false },
    rbac: { aggregate: false },
    topologySpread: { enabled: false },
    crds: { check: false }
  },
  "a trial with a Postgres of its own": { postgres: { embedded: { enabled: true, storageClass: "standard" } }, server: { replicas: 1 } }
}

/** Values that are wrong, and what Helm has to say of them. */
export const wrongValues: ReadonlyArray<readonly [set: string, says: RegExp]> = [
  ["server.replica=3", /'\/server': additional properties 'replica' not allowed/],
  ["servers.replicas=3", /additional properties 'servers' not allowed/],
  ["server.replicas=-1", /'\/server\/replicas': minimum: got -1, want 0/],
  ["server.replicas=two", /'\/server\/replicas': got string, want integer/],
  ["gateway.heapMegabytes=100", /'\/gateway\/heapMegabytes': minimum: got 100, want 256/],
  ["operator.replicas=9", /'\/operator\/replicas': maximum: got 9, want 3/],
  ["image.pullPolicy=Sometimes", /'\/image\/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'/],
  ["image.repository=Registry/Image", /'\/image\/repository': 'Registry\/Image' does not match/],
  ["database.url=postgres://user:secret@host/db", /'\/database': additional properties 'url' not allowed/],
  ["database.existingSecret=", /'\/database\/existingSecret': '' does not match/],
  ["postgres.embedded.password=secret", /'\/postgres\/embedded': additional properties 'password' not allowed/],
  ["hub.endpoint=huggingface.co", /'\/hub\/endpoint': 'huggingface.co' does not match/],
  ["weights.size=lots", /'\/weights\/size': 'lots' does not match/],
  ["weights.accessModes={ReadOnlyMany}", /'\/weights\/accessModes\/0': value must be one of/],
  ["operator.resources.requests.cpu=lots", /'\/operator\/resources\/requests\/cpu': 'lots' does not match/],
  ["networkPolicy.enabled=perhaps", /'\/networkPolicy\/enabled': got string, want boolean/],
  ["networkPolicy.databasePorts[0]=postgres", /'\/networkPolicy\/databasePorts\/0': got string, want integer/],
  ["networkPolicy.blockedNetworks[0]=metadata", /'\/networkPolicy\/blockedNetworks\/0': 'metadata' does not match/],
  ["gateway.env.GATEWAY_CACHE_SECRET=salt", /gateway\.env\.GATEWAY_CACHE_SECRET cannot be set: it comes from the Secret of gateway\.cacheSecret/],
  ["image.digest=sha256:abc", /'\/image\/digest': 'sha256:abc' does not match/],
  ["image.pullSecrets={registry}", /'\/image\/pullSecrets\/0': got string, want object/],
  ["database.programKeys.admin=url", /'\/database\/programKeys': additional properties 'admin' not allowed/],
  ["server.env.DATABASE_ROLE=postgres", /server\.env\.DATABASE_ROLE cannot be set: it comes from database\.roles/],
  ["database.poolSize=0", /'\/database\/poolSize': minimum: got 0, want 1/],
  ["keys.encryption=c2VjcmV0", /'\/keys': additional properties 'encryption' not allowed/],
  ["migrations.deadlineSeconds=1h", /'\/migrations\/deadlineSeconds': got string, want integer/],
  ["server.service.type=Ingress", /'\/server\/service\/type': value must be one of 'ClusterIP', 'NodePort', 'LoadBalancer'/],
  ["server.service.port=70000", /'\/server\/service\/port': maximum: got 70,?000, want 65,?535/],
  ["gateway.graceSeconds=0", /'\/gateway\/graceSeconds': minimum: got 0, want 1/],
  ["operator.leaseSeconds=1", /'\/operator\/leaseSeconds': minimum: got 1, want 3/],
  ["weights.claimName=Weights", /'\/weights\/claimName': 'Weights' does not match/],
  ["weights.cleanup.schedule=every night", /'\/weights\/cleanup\/schedule': 'every night' does not match/],
  ["weights.cleanup.ageDays=0", /'\/weights\/cleanup\/ageDays': minimum: got 0, want 1/],
  ["monitoring.serviceMonitor.interval=30", /'\/monitoring\/serviceMonitor\/interval': got number, want string/],
  ["organizations.namespaces.Team=acme", /invalid propertyName 'Team'[\s\S]*'Team' does not match/],
  ["organizations.namespaces.team-a=Acme", /'\/organizations\/namespaces\/team-a': 'Acme' does not match/],
  ["tolerations[0].effect=Never", /'\/tolerations\/0\/effect': value must be one of/],
  ["tests.server=server:80", /'\/tests\/server': 'server:80' does not match/],
  ["podUser=0", /'\/podUser': minimum: got 0, want 1/],
  ["server.env.lower=1", /'lower' does not match pattern/],
  ["server.env.DATABASE_URL=postgres://secret", /server\.env\.DATABASE_URL cannot be set: it comes from the Secret of database\.existingSecret/],
  ["gateway.env.GATEWAY_PORT=80", /gateway\.env\.GATEWAY_PORT cannot be set: the chart's Service and probes use 8081/],
  [
    "operator.extraEnv[0].name=HF_TOKEN,operator.extraEnv[0].valueFrom.secretKeyRef.name=a,operator.extraEnv[0].valueFrom.secretKeyRef.key=b",
    /operator\.extraEnv has HF_TOKEN, which cannot be set: hub tokens belong to users/
  ],
  ["server.extraEnv[0].name=SERVER_HOST,server.extraEnv[0].value=x", /'\/server\/extraEnv\/0': missing property 'valueFrom'/],
  ["gateway.spool.volume.emptyDir.medium=Memory,gateway.spool.volume.hostPath.path=/x", /'\/gateway\/spool\/volume': maxProperties: got 2, want 1/],
  ["gateway.autoscaling.cpuPercent=0", /'\/gateway\/autoscaling\/cpuPercent': minimum: got 0, want 1/],
  ["ingress.enabled=true", /ingress\.host must be set if ingress\.enabled is true/],
  ["httpRoute.enabled=true", /httpRoute\.parentRefs must name a Gateway/],
  ["logLevel=debug", /'\/logLevel': value must be one of 'Trace', 'Debug'/],
  ["affinity.nodes=1", /'\/affinity': additional properties 'nodes' not allowed/],
  ["organizations.own=Acme", /'\/organizations\/own': 'Acme' does not match/],
  [
    "organizations.namespaces.default=acme",
    /organizations\.namespaces\.default cannot be set: it is the release's own namespace, whose organization is organizations\.own/
  ],
  ["operator.env.OPERATOR_NAMESPACE=other", /operator\.env\.OPERATOR_NAMESPACE cannot be set: it is the release's own namespace/]
]
