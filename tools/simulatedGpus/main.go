// A device plugin that offers GPUs which do not exist, for tests of the scheduler's and the kubelet's part. Usage: simulatedGpus FOLDER COUNT BYTES
// FOLDER is the kubelet's folder of device plugins. A container that gets a GPU reads the memory of one GPU from an environment variable, because there is no driver to ask.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	plugins "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	resource = "nvidia.com/gpu"
	socket   = "simulated-gpus.sock"
)

type plugin struct {
	plugins.UnimplementedDevicePluginServer
	count int
	bytes string
}

func (p *plugin) GetDevicePluginOptions(context.Context, *plugins.Empty) (*plugins.DevicePluginOptions, error) {
	return &plugins.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *plugins.Empty, stream plugins.DevicePlugin_ListAndWatchServer) error {
	var devices []*plugins.Device
	for number := range p.count {
		devices = append(devices, &plugins.Device{ID: fmt.Sprintf("simulated-%d", number), Health: plugins.Healthy})
	}
	if err := stream.Send(&plugins.ListAndWatchResponse{Devices: devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) Allocate(_ context.Context, request *plugins.AllocateRequest) (*plugins.AllocateResponse, error) {
	response := &plugins.AllocateResponse{}
	for range request.ContainerRequests {
		variables := map[string]string{"SEATRIAL_SIMULATED_GPU_BYTES": p.bytes}
		response.ContainerResponses = append(response.ContainerResponses, &plugins.ContainerAllocateResponse{Envs: variables})
	}
	return response, nil
}

func register(folder string) error {
	connection, err := grpc.NewClient("unix://"+filepath.Join(folder, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	within, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = plugins.NewRegistrationClient(connection).Register(within, &plugins.RegisterRequest{Version: plugins.Version, Endpoint: socket, ResourceName: resource})
	return err
}

// serve returns when a kubelet that starts again has emptied the folder.
func serve(folder string, p *plugin) error {
	path := filepath.Join(folder, socket)
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	plugins.RegisterDevicePluginServer(server, p)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	if err := register(folder); err != nil {
		return err
	}
	fmt.Printf("registered %d of %s\n", p.count, resource)
	for {
		time.Sleep(500 * time.Millisecond)
		if _, err := os.Stat(path); err != nil {
			return err
		}
	}
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "Usage: simulatedGpus FOLDER COUNT BYTES")
		os.Exit(2)
	}
	count, err := strconv.Atoi(os.Args[2])
	if err != nil {
		fmt.Fprintf(os.Stderr, "simulatedGpus: COUNT is not a number: %s\n", os.Args[2])
		os.Exit(2)
	}
	for {
		fmt.Println("serving again:", serve(os.Args[1], &plugin{count: count, bytes: os.Args[3]}))
		time.Sleep(time.Second)
	}
}
