package qdranttest

import (
	"context"

	pb "github.com/qdrant/go-client/qdrant"
)

// Both services have methods Get and Delete, so each is registered as a type of
// its own.
type (
	collectionsService struct{ *Server }
	pointsService      struct{ *Server }
)

func (s collectionsService) Get(_ context.Context, r *pb.GetCollectionInfoRequest) (*pb.GetCollectionInfoResponse, error) {
	return s.info(r)
}

func (s collectionsService) Delete(_ context.Context, r *pb.DeleteCollection) (*pb.CollectionOperationResponse, error) {
	return s.deleteCollection(r)
}

func (s pointsService) Get(_ context.Context, r *pb.GetPoints) (*pb.GetResponse, error) {
	return s.getPoints(r)
}

func (s pointsService) Delete(_ context.Context, r *pb.DeletePoints) (*pb.PointsOperationResponse, error) {
	return s.deletePoints(r)
}
