package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// archive is a tar whose bytes depend on its content alone.
type archive struct {
	tar *tar.Writer
	r   *release
	has map[string]bool
}

func (a *archive) add(name string, mode int64, content []byte) error {
	if a.has[name] {
		return nil
	}
	a.has[name] = true
	header := &tar.Header{Name: name, Mode: mode, Size: int64(len(content)), ModTime: a.r.made, Format: tar.FormatPAX}
	if err := a.tar.WriteHeader(header); err != nil {
		return err
	}
	_, err := a.tar.Write(content)
	return err
}

// image writes one image for two processors as a tar with the layout of OCI. Its index.json names
// an index of both: Docker with containerd's store and Podman take the one of their machine, as
// redlockd:VERSION. Docker's older store reads manifest.json, where each has a name of its own.
func (r *release) image() error {
	f, err := os.Create(r.file("-image.tar"))
	if err != nil {
		return err
	}
	defer f.Close()
	out := &archive{tar: tar.NewWriter(f), r: r, has: map[string]bool{}}
	type loaded struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	var (
		index  v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
		images []loaded
	)
	for _, processor := range processors {
		image, err := r.imageFor(processor)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: processor}}})
		one := loaded{RepoTags: []string{"redlockd:" + r.version + "-" + processor}}
		layers, err := image.Layers()
		if err != nil {
			return err
		}
		for _, layer := range layers {
			path, err := out.layer(layer)
			if err != nil {
				return err
			}
			one.Layers = append(one.Layers, path)
		}
		if one.Config, err = out.blob(image.RawConfigFile()); err != nil {
			return err
		}
		if _, err := out.blob(image.RawManifest()); err != nil {
			return err
		}
		images = append(images, one)
	}
	if _, err := out.blob(index.RawManifest()); err != nil {
		return err
	}
	top, err := partial.Descriptor(index)
	if err != nil {
		return err
	}
	top.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": "docker.io/library/redlockd:" + r.version}
	for _, part := range []struct {
		name    string
		content any
	}{
		{"oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}},
		{"index.json", v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{*top}}},
		{"manifest.json", images},
	} {
		text, err := json.Marshal(part.content)
		if err != nil {
			return err
		}
		if err := out.add(part.name, 0o644, text); err != nil {
			return err
		}
	}
	if err := out.tar.Close(); err != nil {
		return err
	}
	return f.Close()
}

// imageFor has one layer: the binary, the certificates of public authorities, the licences.
func (r *release) imageFor(processor string) (v1.Image, error) {
	binary, err := os.ReadFile(r.file("-linux-" + processor))
	if err != nil {
		return nil, err
	}
	licences, err := os.ReadFile(r.file("-licenses.txt"))
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	files := &archive{tar: tar.NewWriter(&content), r: r, has: map[string]bool{}}
	for _, one := range []struct {
		name string
		mode int64
		text []byte
	}{
		{"redlockd", 0o755, binary},
		{"etc/passwd", 0o644, []byte("redlockd:x:65532:65532::/:/sbin/nologin\n")},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, authorities()},
		{"usr/share/doc/redlockd/licenses.txt", 0o644, licences},
	} {
		if err := files.add(one.name, one.mode, one.text); err != nil {
			return nil, err
		}
	}
	if err := files.tar.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.made}, CreatedBy: "make release"}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", processor, v1.Time{Time: r.made}
	// As in configs/Dockerfile.
	config.Config = v1.Config{
		User:         "65532:65532",
		ExposedPorts: map[string]struct{}{"7379/tcp": {}, "9379/tcp": {}},
		Entrypoint:   []string{"/redlockd"},
		Cmd:          []string{"--listen", ":7379", "--admin-listen", ":9379"},
		Labels:       map[string]string{"org.opencontainers.image.version": r.version, "org.opencontainers.image.licenses": "MIT"},
	}
	return mutate.ConfigFile(image, config)
}

// authorities are Mozilla's, as Go has them. One whose trust is limited in ways that a file
// cannot express is left out.
func authorities() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return all.Bytes()
}

// blob adds a manifest or a configuration under its digest.
func (a *archive) blob(content []byte, err error) (path string, _ error) {
	if err != nil {
		return "", err
	}
	digest, _, err := v1.SHA256(bytes.NewReader(content))
	if err != nil {
		return "", err
	}
	path = "blobs/sha256/" + digest.Hex
	return path, a.add(path, 0o644, content)
}

func (a *archive) layer(layer v1.Layer) (path string, err error) {
	packed, err := layer.Compressed()
	if err != nil {
		return "", err
	}
	defer packed.Close()
	content, err := io.ReadAll(packed)
	if err != nil {
		return "", err
	}
	return a.blob(content, nil)
}
